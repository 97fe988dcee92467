//! Messages over raw IP, as used with the kernel's Homa: refusals. Messages between hosts are
//! tested in `lab/command/tests/operator/raw_ip.rs`.

use std::process::Command;

use crate::harness::{run, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_apus");

#[test]
fn a_message_too_long_for_the_kernel_module_is_a_wrong_argument() {
    let output = run("call 127.0.0.1:4000 --driver raw --size 1000001".split(' '));
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("'--size'") && stderr.contains("try 1000000"), "{stderr}");
}

/// The exit status is 1, and the message gives the command that grants the capability.
#[test]
fn without_the_capability_the_command_gives_advice() {
    let without = ["--bounding-set=-net_raw", "--inh-caps=-net_raw", PROGRAM];
    for arguments in ["serve 127.0.0.1:0 --driver raw", "call 127.0.0.1:4000 --driver raw"] {
        // Other users lack the capability anyway.
        let root = rustix::process::geteuid().is_root();
        let mut command = Command::new(if root { "setpriv" } else { PROGRAM });
        if root {
            command.args(without);
        }
        let Ok(output) = command.args(arguments.split(' ')).output() else {
            eprintln!("SKIPPED: setpriv is missing, which drops the capability");
            return;
        };
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains("`sudo setcap cap_net_raw+ep ") && stderr.contains("/apus`"),
            "{stderr}"
        );
        assert!(!stderr.contains("any free port"), "advice that would not help: {stderr}");
    }
}
