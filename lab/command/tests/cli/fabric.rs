//! `apus-lab fabric`: programs in a network of several hosts. Without permission for namespaces or
//! a required program, a test prints a message and passes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::{apus, lab, object, skip_reason, text, with_fake};

/// A private runtime directory without fabrics. All its fabrics are removed when the test ends,
/// also after a failed assertion.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn fabric(&self, words: &str) -> Command {
        let mut command = lab();
        command.arg("fabric").args(words.split(' ')).env("XDG_RUNTIME_DIR", self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, words: &str) -> Output {
        self.fabric(words).output().unwrap()
    }

    /// Builds a fabric. Returns `None`, with a message, if this machine does not allow it.
    pub(crate) fn up(&self, words: &str) -> Option<Output> {
        let output = self.run(&format!("up {words}"));
        if output.status.success() {
            return Some(output);
        }
        let stderr = text(&output.stderr);
        let reason = skip_reason(&stderr);
        eprintln!("SKIPPED: {}", reason.unwrap_or_else(|| panic!("{stderr}")));
        None
    }

    /// Runs a command while a script replaces a program of the system.
    fn with_fake(&self, program: &str, script: &str, words: &str) -> Output {
        let path = with_fake(self.folder.path(), program, script);
        self.fabric(words).env("PATH", path).output().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.run("down --all");
    }
}

#[test]
fn programs_in_hosts_exchange_messages() {
    let world = World::new();
    let Some(up) = world.up("--nodes 2") else { return };
    let stdout = text(&up.stdout);
    assert!(stdout.contains("fabric `default` is up: 2 hosts, 200mbit"), "{stdout}");
    // The suggested commands work, as the rest of this test shows.
    assert!(stdout.contains("apus-lab fabric exec h2 -- apus serve 10.77.0.2:4000"), "{stdout}");
    let Some(program) = apus() else { return };
    let program = program.display();
    let mut serve = world
        .fabric(&format!("exec h2 -- {program} serve 10.77.0.2:4000"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "listening on 10.77.0.2:4000\n");
    let call = world.run(&format!("exec h1 -- {program} call 10.77.0.2:4000 --size 100000"));
    assert!(text(&call.stdout).contains("100000 bytes"), "{call:?}");
    let show = object(&world.run("show --json"));
    let bytes = |host: usize| {
        let levels = show["hosts"][host]["levels"].as_array().unwrap();
        assert_eq!(levels.len(), 8);
        levels.iter().map(|level| level["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(bytes(0) > 100_000 && bytes(1) > 100_000, "there and back: {show}");
    assert_eq!(show["settings"]["link"], "200mbit");
    let table = text(&world.run("show").stdout);
    assert!(table.contains("h1") && table.contains("10.77.0.2") && table.contains("queued bytes"));
    let down = world.run("down");
    assert_eq!(
        (down.status.code(), text(&down.stderr)),
        (Some(0), "fabric `default` is down\n".into())
    );
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn a_program_finds_its_host_in_the_environment_and_its_status_is_returned() {
    let world = World::new();
    if world.up("--nodes 3 --name lab").is_none() {
        return;
    }
    let mut exec = world.fabric("exec --name lab h3 -- sh -c");
    let output = exec.arg("echo $APUS_NODE $APUS_ADDRESS; exit 7").output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "h3 10.77.0.3\n".into()));
    let output = world.run("exec --name lab h1 -- /no/such/program");
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let output = world.run("exec --name lab h4 -- true");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("the hosts are h1 to h3") && stderr.contains("Try: apus-lab fabric exec"),
        "{stderr}"
    );
}

#[test]
fn several_fabrics_have_names() {
    let world = World::new();
    let Some(first) = world.up("--nodes 2 --json") else { return };
    assert_eq!(object(&first)["hosts"][1]["address"], "10.77.0.2");
    let second = world.up("--nodes 2 --name second --link 10mbit --json").unwrap();
    assert_eq!(object(&second)["settings"]["link"], Value::from("10mbit"));
    let again = world.run("up --name second");
    assert_eq!(again.status.code(), Some(1));
    let stderr = text(&again.stderr);
    assert!(
        stderr.contains("is up already") && stderr.contains("apus-lab fabric down --name second"),
        "{stderr}"
    );
    let none = text(&world.run("show --name third").stderr);
    assert!(none.contains("(there is default, second)"), "{none}");
    let down = text(&world.run("down --all").stderr);
    assert_eq!(down, "fabric `default` is down\nfabric `second` is down\n");
    assert_eq!(text(&world.run("down --all").stderr), "no fabric is up\n");
}

/// `unshare` fails as it does where users may not create namespaces.
#[test]
fn without_the_right_to_create_namespaces_the_command_gives_advice() {
    let world = World::new();
    let refusal = "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1";
    let output = world.with_fake("unshare", refusal, "up");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in ["Operation not permitted", "run it as root", "user.max_user_namespaces"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    assert_eq!(text(&world.run("down --all").stderr), "no fabric is up\n");
}

/// The error contains the namespace, the command and the line of its input.
#[test]
fn a_program_that_fails_is_quoted() {
    let world = World::new();
    if world.up("--nodes 2").is_none() {
        return;
    }
    world.run("down");
    let failing = "cat > /dev/null; echo 'RTNETLINK answers: No buffer space available' >&2
echo 'Command failed -:1' >&2; exit 1";
    let output = world.with_fake("ip", failing, "up");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in ["switch: `ip -batch -` failed", "No buffer space", "(link set lo up)"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    let output = world.with_fake(
        "tc",
        "echo 'Error: Specified qdisc kind is unknown.' >&2
echo 'Command failed -:1' >&2; exit 1",
        "up --name other",
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&world.run("down --all").stderr), "no fabric is up\n");
}
