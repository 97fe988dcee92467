//! ZeroMQ between processes of one host.

use std::process::ExitCode;

use compare_zeromq::ZeroMq;

fn main() -> ExitCode {
    compare_kit::run::<ZeroMq<true>>()
}
