//! Scenario: several hosts on this machine communicate over links and a switch. They behave as
//! specified, and leave nothing behind when they exit.
//!
//! The tests run as the calling user, and if that is root, as an unprivileged user as well. They
//! are skipped with a message if the user lacks the privilege to create namespaces or a program is
//! missing.

mod ends;
mod links;
mod persistent;
mod programs;

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, exit};
use std::thread;
use std::time::Duration;

use apus_testbed::Error;
use apus_testbed::fabric::persistent::{OWNER, owner_main};
use apus_testbed::fabric::{Fabric, FabricError, Spec};

/// Set for the process that runs the tests: its folder for runtime state.
const WORLD: &str = "XDG_RUNTIME_DIR";

/// Name of the user that runs the tests a second time, if the calling user is root.
const OTHER_USER: &str = "unprivileged";

/// Argument of the process that runs the tests in their folder.
const TESTS: &str = "__tests";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [OWNER, ..] => owner_main(),
        [programs::PROGRAM, rest @ ..] => programs::main(rest),
        [ends::OWNER] => ends::owner(),
        [TESTS, who] => tests(who),
        // cargo passes arguments for test harnesses.
        _ => worlds(),
    }
}

/// Runs the tests in a separate folder, as the calling user and as another user.
fn worlds() -> ExitCode {
    let world = tempfile::tempdir().expect("a folder");
    let program = world.path().join("fabric-tests");
    fs::copy(env::current_exe().expect("a program"), &program).expect("room for a copy");
    // Other users can enter; each user has a separate folder in it.
    fs::set_permissions(world.path(), Permissions::from_mode(0o755)).expect("own folder");
    let mut good = run(Command::new(&program).args([TESTS, "caller"]), world.path(), "caller");
    if rustix::process::geteuid().is_root() {
        let mut other = Command::new("setpriv");
        other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        other.arg(&program).args([TESTS, OTHER_USER]);
        good &= run(&mut other, world.path(), OTHER_USER);
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(command: &mut Command, world: &Path, who: &str) -> bool {
    let folder = world.join(who);
    fs::create_dir(&folder).expect("a folder");
    if who == OTHER_USER {
        std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534)).expect("we are root");
    }
    match command.env(WORLD, &folder).current_dir("/").status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("SKIPPED: tests as {who}: {error} (setpriv belongs to util-linux)");
            true
        }
    }
}

fn tests(who: &str) -> ExitCode {
    let spec = Spec { nodes: 2, ..Spec::default() };
    if let Err(error @ Error::Unavailable { .. }) = Fabric::up(&spec) {
        eprintln!("SKIPPED: fabric as {who}: {error}");
        return ExitCode::SUCCESS;
    }
    exit_on_hang();
    links::all(who);
    ends::all(who);
    persistent::all(who);
    ExitCode::SUCCESS
}

/// Ends tests that hang.
fn exit_on_hang() {
    thread::spawn(|| {
        thread::sleep(TIMEOUT);
        eprintln!("hung for {} s", TIMEOUT.as_secs());
        exit(1);
    });
}

/// Chosen by us: thirty times the duration of all tests on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Prints the name of the test; cargo shows it if the test fails.
fn test(who: &str, name: &str, body: impl FnOnce()) {
    println!("{who}: {name}");
    body();
}

/// Returns a fabric; `None` if this machine lacks a prerequisite.
fn fabric(spec: &Spec) -> Option<Fabric> {
    match Fabric::up(spec) {
        Ok(fabric) => Some(fabric),
        Err(error) => match FabricError::of(&error) {
            Some(FabricError::Missing { .. } | FabricError::NoQdisc { .. }) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            _ => panic!("{error}"),
        },
    }
}
