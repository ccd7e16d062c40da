#include "tests/common/data/test_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>

namespace tandem {

std::string NewFolder() {
  std::string folder = testing::TempDir() + "/data_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr) << folder;
  return folder;
}

std::string WriteFile(const std::string& dir, const std::string& name, const std::string& bytes) {
  const std::string path = dir + "/" + name;
  // Some file systems wait for the disk when a file is overwritten, but not when it is new.
  std::remove(path.c_str());
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  EXPECT_TRUE(file.flush().good()) << path;
  return path;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string IdxBytes(const std::vector<uint32_t>& dimensions, const std::vector<uint8_t>& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint32_t dimension : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dimension >> shift);
  }
  return bytes.append(data.begin(), data.end());
}

v1::Dataset IdxSpec(const std::vector<std::string>& files) {
  v1::Dataset spec;
  spec.mutable_train_files()->Add(files.begin(), files.end());
  spec.mutable_idx();
  return spec;
}

v1::Dataset LibSvmSpec(const std::vector<std::string>& files, uint32_t num_features) {
  v1::Dataset spec;
  spec.mutable_train_files()->Add(files.begin(), files.end());
  spec.mutable_libsvm()->set_num_features(num_features);
  return spec;
}

}  // namespace tandem
