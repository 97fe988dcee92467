//! NNG over TCP.

use std::process::ExitCode;

use compare_nng::Nng;

fn main() -> ExitCode {
    compare_kit::run::<Nng<false>>()
}
