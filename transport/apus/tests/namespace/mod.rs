//! Tests in separate network namespaces. `transport/socket` includes this file, too.
//!
//! Such a test starts its binary again inside a new namespace, for this test alone; the namespace
//! ends with it. Ordinary users may do that on most systems; elsewhere the test is skipped.

use std::process::Command;

/// Set inside the namespace.
const INSIDE: &str = "APUS_TEST_NAMESPACE";

/// A network namespace of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Namespace<'a> {
    /// Programs and features that the commands need.
    pub(crate) needs: &'a str,
    /// Shell commands to try first, in a separate namespace: the test is skipped if they fail.
    pub(crate) check: &'a str,
    /// Shell commands that set up the network.
    pub(crate) setup: &'a str,
}

impl Namespace<'_> {
    /// Runs `body`, which is the test `name` of the binary, in a new namespace. It may mount file
    /// systems there.
    pub(crate) fn run(self, name: &str, body: impl FnOnce()) {
        let Self { needs, check, setup } = self;
        if std::env::var_os(INSIDE).is_some() {
            return body();
        }
        if !unshare(check).output().is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: {name} needs unshare, namespaces and {needs}");
            return;
        }
        let script = format!("{setup}\nexec \"$0\" --exact {name} --nocapture");
        let test = std::env::current_exe().unwrap();
        let output = unshare(&script).arg(test).env(INSIDE, "1").output().unwrap();
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let passed = output.status.success() && text.contains("test result: ok. 1 passed");
        assert!(passed, "in the namespace:\n{text}{errors}");
    }
}

/// Returns the command that runs a shell script in a new namespace.
fn unshare(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--mount", "sh", "-ec", script]);
    command
}
