//! apus in the clear.

use std::process::ExitCode;

use compare_apus::Clear;

fn main() -> ExitCode {
    compare_kit::run::<Clear>()
}
