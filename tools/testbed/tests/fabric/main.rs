//! Situation: there are several hosts on this machine. They talk to each other over links and a switch that
//! behave as they should, and whatever happens, nothing stays behind.
//!
//! Runs as whoever calls it, and as an ordinary user besides if that is root. Where nobody may create
//! namespaces, or a program is missing, it says so and passes.

mod ends;
mod links;
mod programs;
mod standing;

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, exit};
use std::thread;
use std::time::Duration;

use apus_testbed::Error;
use apus_testbed::fabric::standing::{KEEPER, keeper_main};
use apus_testbed::fabric::{Fabric, Refusal, Spec};

/// Set for the process that runs the tests: its folder for what runs.
const WORLD: &str = "XDG_RUNTIME_DIR";

/// The argument that says that the world is made.
const TESTS: &str = "__tests";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [KEEPER, ..] => keeper_main(),
        [programs::PROGRAM, rest @ ..] => programs::main(rest),
        [ends::OWNER] => ends::owner(),
        [TESTS, who] => tests(who),
        // Whatever cargo adds is for harnesses.
        _ => worlds(),
    }
}

/// Runs the tests in a folder of their own, as whoever this is and as nobody.
fn worlds() -> ExitCode {
    let world = tempfile::tempdir().expect("a folder");
    let program = world.path().join("fabric-tests");
    fs::copy(env::current_exe().expect("a program"), &program).expect("room for a copy");
    // Others can come in, and each has a folder of its own in it.
    fs::set_permissions(world.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let mut good = run(Command::new(&program).args([TESTS, "caller"]), world.path(), "caller");
    if rustix::process::geteuid().is_root() {
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        nobody.arg(&program).args([TESTS, "nobody"]);
        good &= run(&mut nobody, world.path(), "nobody");
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(command: &mut Command, world: &Path, who: &str) -> bool {
    let folder = world.join(who);
    fs::create_dir(&folder).expect("a folder");
    if who == "nobody" {
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
    if let Err(error @ Error::Fabric(_)) = Fabric::up(&spec) {
        eprintln!("SKIPPED: fabric as {who}: {error}");
        return ExitCode::SUCCESS;
    }
    watch_over_hangs();
    links::all(who);
    ends::all(who);
    standing::all(who);
    ExitCode::SUCCESS
}

/// Ends tests that wait for what never comes.
fn watch_over_hangs() {
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        eprintln!("hung for {} s", PATIENCE.as_secs());
        exit(1);
    });
}

/// Ours: thirty times what all tests take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Says what is being tested; cargo shows it if the test fails.
fn test(who: &str, name: &str, body: impl FnOnce()) {
    println!("{who}: {name}");
    body();
}

/// A fabric that has to come up, but for what this machine lacks.
fn fabric(spec: &Spec) -> Option<Fabric> {
    match Fabric::up(spec) {
        Ok(fabric) => Some(fabric),
        Err(Error::Fabric(missing @ (Refusal::Missing { .. } | Refusal::NoQdisc { .. }))) => {
            eprintln!("SKIPPED: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
