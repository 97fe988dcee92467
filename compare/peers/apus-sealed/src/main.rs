//! apus with every packet sealed.

use std::process::ExitCode;

use compare_apus::Apus;

fn main() -> ExitCode {
    compare_kit::run::<Apus<true>>()
}
