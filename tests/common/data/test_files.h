// Files made by tests, each test in a folder of its own.
#ifndef TANDEM_TESTS_COMMON_DATA_TEST_FILES_H_
#define TANDEM_TESTS_COMMON_DATA_TEST_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace tandem {

// A new, empty folder for the test that runs.
std::string NewFolder();

// Writes DIR/NAME and returns its path.
std::string WriteFile(const std::string& dir, const std::string& name, const std::string& bytes);

// One gzip member.
std::string Gzip(const std::string& bytes);

// An IDX file of unsigned bytes.
std::string IdxBytes(const std::vector<uint32_t>& dimensions, const std::vector<uint8_t>& data);

// Specs whose train files are `files`. The defaults of every other field.
v1::Dataset IdxSpec(const std::vector<std::string>& files);
v1::Dataset LibSvmSpec(const std::vector<std::string>& files, uint32_t num_features);

}  // namespace tandem

#endif  // TANDEM_TESTS_COMMON_DATA_TEST_FILES_H_
