//! Messages between hosts whose interfaces merge packets in unusual ways. Without permission for
//! namespaces, or without ethtool, a test prints a message and passes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::{object, program, text};
use crate::hosts::Hosts;

/// With `rx-gro-list` the kernel merges packets of all sockets as a list and splits them again.
#[test]
fn lists_of_merged_packets_keep_every_byte() {
    let Some(program) = program() else { return };
    let Some(hosts) = Hosts::up() else { return };
    for host in 0..2 {
        let switch = hosts.command(host, "ethtool -K fab0 gro on rx-gro-list on").output().unwrap();
        if !switch.status.success() {
            eprintln!("SKIPPED: rx-gro-list cannot be switched on: {}", text(&switch.stderr));
            return;
        }
    }
    let program = program.display();
    let mut service = hosts
        .command(1, &format!("{program} serve 10.77.0.2:4000"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "listening on 10.77.0.2:4000\n");
    for size in [1, 1_400, 50_000, 1_000_000] {
        let words = format!("{program} call 10.77.0.2:4000 --size {size} --count 5 --json");
        let result = object(&hosts.command(0, &words).output().unwrap());
        assert_eq!(result["rows"][0]["identical"], 5, "{result}");
    }
    service.kill().unwrap();
    service.wait().unwrap();
}
