//! apus in the clear.

use std::process::ExitCode;

use compare_apus::Apus;

fn main() -> ExitCode {
    compare_kit::run::<Apus<false>>()
}
