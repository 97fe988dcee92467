//! apus with every packet sealed.

use std::process::ExitCode;

use compare_apus::Sealed;

fn main() -> ExitCode {
    compare_kit::run::<Sealed>()
}
