//! UCX over TCP.

use std::process::ExitCode;

use compare_ucx::Ucx;

fn main() -> ExitCode {
    compare_kit::run::<Ucx<false>>()
}
