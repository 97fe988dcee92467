//! Tests for ordinary users.
//!
//! On most systems any user can be root in a new user namespace: all tests run again there.

use std::process::Command;

use rustix::process::geteuid;

#[test]
fn all_tests_as_root_of_a_user_namespace() {
    if geteuid().is_root() {
        return; // The tests run directly.
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net"]);
        command
    };
    if !unshare().arg("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no user namespaces for ordinary users here");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let output = unshare().arg(test).arg("--nocapture").output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{errors}");
    assert!(output.status.success(), "in the namespace:\n{text}{errors}");
}
