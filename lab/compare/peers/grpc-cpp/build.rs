//! Builds `src/echo.cc` with the gRPC C++ of the system.

use std::env;
use std::path::Path;
use std::process::Command;

const PROTO: &str = "../../../../rpc/tonic/proto/bench.proto";

fn main() {
    println!("cargo:rerun-if-changed=src/echo.cc");
    println!("cargo:rerun-if-changed={PROTO}");
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    let plugin = Command::new("sh").args(["-c", "command -v grpc_cpp_plugin"]).output();
    let plugin = String::from_utf8(plugin.expect("there is a shell").stdout).expect("a path");
    let generated = Command::new("protoc")
        .arg(format!("--plugin=protoc-gen-grpc={}", plugin.trim()))
        .arg(format!("--proto_path={}", Path::new(PROTO).parent().expect("a folder").display()))
        .args([format!("--cpp_out={folder}"), format!("--grpc_out={folder}")])
        .arg(PROTO)
        .status()
        .expect("protoc is installed");
    assert!(generated.success(), "protoc fails");
    let library = pkg_config::probe_library("grpc++").expect("gRPC C++ is installed");
    pkg_config::probe_library("protobuf").expect("protobuf is installed");
    let folder = Path::new(&folder);
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(3)
        .warnings(false)
        .includes(library.include_paths)
        .include(folder)
        .file("src/echo.cc")
        .file(folder.join("bench.pb.cc"))
        .file(folder.join("bench.grpc.pb.cc"))
        .compile("echo");
}
