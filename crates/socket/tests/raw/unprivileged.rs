//! What if an ordinary user runs the tests?
//!
//! In a user namespace of its own everybody is root, on most systems: there all tests run again.

use std::process::Command;

use rustix::process::geteuid;

#[test]
fn all_of_it_as_root_of_a_user_namespace() {
    if geteuid().is_root() {
        return; // The tests run themselves.
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
    let (told, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{errors}");
    assert!(output.status.success(), "in the namespace:\n{told}{errors}");
}
