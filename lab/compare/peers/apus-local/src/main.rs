//! apus between processes of one host.

use std::process::ExitCode;

use compare_apus::SameHost;

fn main() -> ExitCode {
    compare_kit::run::<SameHost>()
}
