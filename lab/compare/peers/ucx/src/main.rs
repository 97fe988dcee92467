//! UCX over TCP.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use compare_ucx::Ucx;

fn main() -> ExitCode {
    if let Err(error) = see_own_devices() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    compare_kit::run::<Ucx<false>>()
}

/// Restarts this program with a /sys of its network namespace, if the mounted /sys belongs to
/// another namespace. UCX discovers devices in /sys, and the hosts of a fabric share that with the
/// machine.
fn see_own_devices() -> io::Result<()> {
    let devices = fs::read_to_string("/proc/net/dev")?;
    let mut names = devices.lines().filter_map(|line| line.split_once(':'));
    if names.all(|(name, _)| Path::new("/sys/class/net").join(name.trim()).exists()) {
        return Ok(());
    }
    let script = r#"mount -t sysfs sysfs /sys && exec "$0" "$@""#;
    let mut again = Command::new("unshare");
    again
        .args(["--mount", "sh", "-c", script])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1));
    Err(again.exec())
}
