//! ZeroMQ over TCP.

use std::process::ExitCode;

use compare_zeromq::ZeroMq;

fn main() -> ExitCode {
    compare_kit::run::<ZeroMq<false>>()
}
