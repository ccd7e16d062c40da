"""@system_libs: the Debian -dev packages as cc_library targets.

Headers are found in /usr/include, which Bazel's C++ toolchain counts as built
in and does not track. So each target has a define with a hash of the packages'
and the compiler's versions: an upgrade recompiles instead of hitting the cache.
(A stamp header would not do: Bazel drops headers that the .d file does not name.)
"""

_LIBDIR = "/usr/lib/x86_64-linux-gnu/"

# name: (Debian package, file that must exist, linkopts, deps)
_LIBS = {
    "absl": ("libabsl-dev", "/usr/include/absl/status/statusor.h", "ABSL", []),
    "protobuf": ("libprotobuf-dev", "/usr/include/google/protobuf/message.h", ["-lprotobuf"], []),
    "grpc++": ("libgrpc++-dev", "/usr/include/grpcpp/grpcpp.h", ["-lgrpc++", "-lgrpc", "-lgpr"], ["absl", "protobuf"]),
    "grpc++_reflection": ("libgrpc++-dev", "/usr/include/grpcpp/ext/proto_server_reflection_plugin.h", ["-Wl,--no-as-needed", "-lgrpc++_reflection", "-Wl,--as-needed"], ["grpc++"]),
    "gtest": ("libgtest-dev", _LIBDIR + "libgtest.a", ["-lgtest"], []),
    "gmock": ("libgmock-dev", _LIBDIR + "libgmock.a", ["-lgmock", "-lgtest"], []),
    "gmock_main": ("libgmock-dev", _LIBDIR + "libgmock_main.a", ["-lgmock_main", "-lgmock", "-lgtest"], []),
    "benchmark": ("libbenchmark-dev", "/usr/include/benchmark/benchmark.h", ["-lbenchmark"], []),
    "benchmark_main": ("libbenchmark-dev", _LIBDIR + "libbenchmark_main.a", ["-lbenchmark_main", "-lbenchmark"], []),
    "tcmalloc": ("libgoogle-perftools-dev", _LIBDIR + "libtcmalloc.so", ["-Wl,--no-as-needed", "-ltcmalloc", "-Wl,--as-needed"], []),
    # libgomp is oneDNN's thread pool; each thread of ours asks it for one thread (omp_set_num_threads).
    "dnnl": ("libdnnl-dev", "/usr/include/dnnl.hpp", ["-ldnnl", "-lgomp"], []),
    "xxhash": ("libxxhash-dev", "/usr/include/xxhash.h", ["-lxxhash"], []),
    "z": ("zlib1g-dev", "/usr/include/zlib.h", ["-lz"], []),
    "json": ("nlohmann-json3-dev", "/usr/include/nlohmann/json.hpp", [], []),
}


_TOOLS = {
    "protoc": ("protobuf-compiler", "/usr/bin/protoc"),
    "grpc_cpp_plugin": ("protobuf-compiler-grpc", "/usr/bin/grpc_cpp_plugin"),
}

_TSAN_SHIM = " + select({'@tandem//third_party/system:tsan': ['@tandem//third_party/system:tsan_shim'], '//conditions:default': []})"

_WKT = ["any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"]

def _system_libs_impl(ctx):
    needed = {name: (l[0], l[1]) for name, l in _LIBS.items()}
    needed.update(_TOOLS)
    missing = {pkg: True for pkg, path in needed.values() if not ctx.path(path).exists}
    if missing:
        fail("\n\nMissing Debian packages. Run:\n  apt-get install -y --no-install-recommends " + " ".join(missing.keys()) + "\n")

    packages = {pkg: True for pkg, _ in needed.values()}.keys()
    versions = "unknown\n"
    if ctx.which("dpkg-query"):
        versions = ctx.execute(["dpkg-query", "-W", "-f=${Package} ${Version}\\n"] + packages).stdout
    versions += ctx.execute([ctx.os.environ.get("CC", "gcc"), "--version"]).stdout.split("\n")[0] + "\n"
    ctx.file("versions.txt", versions)

    build = ['package(default_visibility = ["//visibility:public"])']
    for name, (_, path) in _TOOLS.items():
        ctx.symlink(path, name)
    build.append("exports_files(%r)" % list(_TOOLS.keys()))

    for w in _WKT:
        ctx.symlink("/usr/include/google/protobuf/%s.proto" % w, "google/protobuf/%s.proto" % w)
    build.append("proto_library(name = 'well_known_protos', srcs = %r, strip_import_prefix = '/')" % ["google/protobuf/%s.proto" % w for w in _WKT])

    # Abseil is some 60 small libraries: name all, link the needed ones.
    absl = [p.basename[3:-3] for p in ctx.path(_LIBDIR).readdir() if p.basename.startswith("libabsl_") and p.basename.endswith(".so")]
    absl = ["-Wl,--push-state,--as-needed"] + ["-l" + l for l in sorted(absl)] + ["-Wl,--pop-state"]

    stamp = "TANDEM_SYSTEM_LIBS=%d" % hash(versions)
    for name, (_, _, linkopts, deps) in _LIBS.items():
        if linkopts == "ABSL":
            linkopts = absl
        build.append("cc_library(name = %r, defines = %r, linkopts = %r, deps = %r%s)" % (name, [stamp], linkopts, [":" + d for d in deps], _TSAN_SHIM if name == "absl" else ""))
    ctx.file("BUILD", "\n".join(build) + "\n")

system_libs = repository_rule(implementation = _system_libs_impl, local = True, configure = True, environ = ["CC"])
