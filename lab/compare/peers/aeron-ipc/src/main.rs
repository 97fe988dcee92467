//! Aeron between processes of one host.

use std::process::ExitCode;

use compare_aeron::AeronStreams;

fn main() -> ExitCode {
    compare_kit::run::<AeronStreams<true>>()
}
