//! UCX between processes of one host.

use std::process::ExitCode;

use compare_ucx::Ucx;

fn main() -> ExitCode {
    compare_kit::run::<Ucx<true>>()
}
