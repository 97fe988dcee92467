//! Aeron over UDP.

use std::process::ExitCode;

use compare_aeron::AeronStreams;

fn main() -> ExitCode {
    compare_kit::run::<AeronStreams<false>>()
}
