//! Generates the Rust code of the `.proto` files of apus-tonic and of the benchmark. No protoc is
//! needed: protox compiles them.
//!
//! Run `cargo run` in this folder after a change of a `.proto` file. The output is committed, so
//! that builds and tests need neither this program nor its dependencies.

use protox::prost::Message;
use std::path::Path;

fn main() {
    let tonic = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of apus-tonic");
    let protos = tonic.join("proto");
    let generate = |proto: &str, out: &Path| {
        let set = protox::compile([protos.join(proto)], [&protos]).expect(proto);
        let mut config = prost_build::Config::new();
        config.bytes(["."]);
        tonic_prost_build::configure()
            .build_transport(false)
            .out_dir(out)
            .compile_fds_with_config(set.clone(), config)
            .expect(proto);
        set.encode_to_vec()
    };
    let rename = |out: &Path, from: &str, to: &str| {
        std::fs::rename(out.join(from), out.join(to)).expect(to);
    };
    let tests = tonic.join("tests/interop/generated");
    let descriptors = generate("grpc/testing/test.proto", &tests);
    rename(&tests, "grpc.testing.rs", "grpc_testing.rs");
    std::fs::write(tests.join("descriptors.bin"), descriptors).expect("descriptors.bin");
    let example = tonic.join("examples/helloworld");
    generate("helloworld.proto", &example);
    rename(&example, "helloworld.rs", "generated.rs");
    let bench = tonic.join("../../lab/bench/src/rpc/generated");
    generate("bench.proto", &bench);
    rename(&bench, "bench.rs", "echo.rs");
}
