//! `apus-lab demo` on each path: between hosts on shaped links, in the simulator, and over
//! loopback.
//!
//! The runs are far too short for meaningful figures. They show that each system gets a result,
//! that the result names the path and the reason for it, and that the JSON satisfies its contract.
//! Missing features of a system are not simulated: the tests drop capabilities and limit resources
//! of the demo process.

#[path = "../../../../command/report/tests/browser/mod.rs"]
mod browser;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::contract::check;
use crate::harness::{skip_reason, text, with_fake};

/// Arguments of the shortest possible demo.
const TINY: [&str; 6] = ["demo", "--seconds", "0.3", "--runs", "1", "--json"];

/// A folder accessible to any user, with a copy of the command: a checkout may be inaccessible to
/// other users.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A separate process copies: a child started concurrently by another thread of this test
        // would inherit the open file, and a file that is open for writing cannot be executed.
        let copy =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_apus-lab")).arg(folder.path()).status();
        assert!(copy.unwrap().success());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("apus-lab")
    }

    /// Returns the command as this user runs it.
    pub(crate) fn as_caller(&self) -> Command {
        Command::new(self.program())
    }

    /// Returns the command as a user without privileges runs it.
    pub(crate) fn as_ordinary_user(&self) -> Command {
        if !rustix::process::geteuid().is_root() {
            return self.as_caller();
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(self.program());
        command
    }

    /// Returns the command for a user without permission to create namespaces. `limits` is a shell
    /// command that restricts the process further.
    fn without_namespaces(&self, limits: &str) -> Command {
        let possible = Command::new("unshare").args(["--user", "--map-root-user", "true"]).output();
        if !possible.is_ok_and(|output| output.status.success()) {
            // Then an ordinary user may not create them anyway.
            let user = self.as_ordinary_user();
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]);
            command.arg(user.get_program()).args(user.get_args());
            return command;
        }
        // Root of a user namespace may forbid nested user namespaces. Without capabilities it
        // cannot create other namespaces either.
        let script = format!(
            "echo 0 > /proc/sys/user/max_user_namespaces && {limits} \
             && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs -- \"$@\""
        );
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--", "sh", "-c", &script, "sh"]);
        command.arg(self.program());
        command
    }
}

/// Runs the command with these arguments to its end.
fn finish(mut command: Command, arguments: &[&str]) -> Output {
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Checks the JSON object and its path. Returns the object.
fn checked(output: &Output, path: &str) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("demo", &text(&output.stdout)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json["path"], path, "{}", text(&output.stderr));
    json
}

fn names(json: &Value) -> Vec<&str> {
    let rows = json["rows"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

fn notes(json: &Value) -> String {
    let notes = json["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    notes.collect::<Vec<_>>().join("\n")
}

/// Asserts that the page is self-contained, and that its first chart is slowdown by size.
fn assert_page(page: &Path, rows: &[&str]) {
    let page = fs::read_to_string(page).unwrap();
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "the page refers to something by `{outside}`");
    }
    let content = browser::content(&page);
    for broken in ["NaN", "inf", "undefined", "none"] {
        assert!(!content.contains(broken), "the page shows `{broken}`");
    }
    let (_, from_first) = page.split_once("<svg class=\"chart\"").expect("a chart");
    let (first, _) = from_first.split_once("</svg>").unwrap();
    assert!(first.contains("Slowdown against message size"), "{first}");
    for name in rows {
        assert!(first.contains(&format!("<g data-name=\"{name}\"")), "{name} in the first chart");
    }
    let charts = page.matches("<svg class=\"chart\"").count();
    let tables = page.matches("<table").count();
    browser::open(&page, (charts, tables), "return true");
}

/// The baseline is the same for both: root of a namespace chooses the congestion control of its
/// sockets, regardless of the system's restrictions for others.
#[test]
fn on_shaped_links_root_and_ordinary_users_compare_with_the_same_tcp() {
    let world = World::new();
    let offered = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let cubic = fs::read_to_string(offered).is_ok_and(|names| names.contains("cubic"));
    for command in [world.as_caller(), world.as_ordinary_user()] {
        let output = finish(command, &[&TINY[..], &["--no-html"]].concat());
        let stderr = text(&output.stderr);
        if let Some(reason) = skip_reason(&stderr) {
            eprintln!("SKIPPED: {reason}");
            continue;
        }
        let json = checked(&output, "fabric");
        assert_eq!(names(&json), ["apus", "tcp", "tcp-per-request"]);
        for row in ["tcp", "tcp-per-request"] {
            let settings = json["config"]["settings"][row].as_str().unwrap();
            assert_eq!(settings.contains("congestion control cubic"), cubic, "{settings}");
            assert_eq!(notes(&json).contains("congestion control is"), !cubic, "{json}");
        }
        assert!(json.get("loopback").is_none());
        let built = "4 hosts and a switch (5 network namespaces) with 4 links of 40 Mbit/s";
        assert!(stderr.contains(built) && stderr.contains("Taken down again"), "{stderr}");
    }
}

#[test]
fn the_page_begins_with_slowdown_by_size() {
    let world = World::new();
    let page = world.folder.path().join("page.html");
    let output = finish(
        world.as_caller(),
        &["demo", "--seconds", "0.3", "--runs", "1", "--html", page.to_str().unwrap()],
    );
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("page.html; open it in a browser"), "{stderr}");
    assert!(stdout.contains("slowdown by size, p50 / p99"), "{stdout}");
    if let Some(reason) = skip_reason(&stderr) {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    assert_page(&page, &["apus", "tcp", "tcp-per-request"]);
    assert!(stdout.contains("ms over tcp-per-request."), "the meaning in words: {stdout}");
}

#[test]
fn without_namespaces_the_simulator_answers_and_loopback_is_added() {
    let world = World::new();
    let page = world.folder.path().join("page.html");
    let output = finish(
        world.without_namespaces("true"),
        &[&TINY[..], &["--html", page.to_str().unwrap()]].concat(),
    );
    let json = checked(&output, "simulator");
    assert_eq!(names(&json), ["apus", "dctcp"]);
    assert_eq!((&json["rows"][0]["errors"], &json["rows"][1]["errors"]), (&0.into(), &0.into()));
    let stderr = text(&output.stderr);
    for said in [&stderr, &notes(&json)] {
        for part in ["may not create network namespaces", "user.max_user_namespaces"] {
            assert!(said.contains(part), "{said}");
        }
    }
    assert_page(&page, &["apus", "dctcp"]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Simulated hosts: this system allows no network"), "{page}");
}

/// The processor time limit of the process is below the need of a simulation of 800,000 messages.
#[test]
fn without_the_simulator_loopback_remains() {
    let world = World::new();
    let arguments = ["demo", "--seconds", "100", "--runs", "1", "--json", "--no-html"];
    let output = finish(world.without_namespaces("ulimit -t 4"), &arguments);
    let json = checked(&output, "loopback");
    assert_eq!(names(&json), ["apus", "tcp"]);
    assert_eq!(json["loopback"]["rows"], json["rows"]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("the simulator does not run here"), "{stderr}");
}

/// Without the queueing discipline HTB links have no rate. The working directory is not writable.
#[test]
fn without_htb_the_demo_says_how_to_get_it() {
    let world = World::new();
    let refusal = "cat > /dev/null; echo 'Error: Specified qdisc kind is unknown.' >&2
echo 'Command failed -:1' >&2; exit 1";
    let path = with_fake(world.folder.path(), "tc", refusal);
    let mut command = world.as_caller();
    command.env("PATH", path).current_dir("/proc");
    let output = finish(command, &TINY);
    let json = checked(&output, "simulator");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("apus-demo.html cannot be written here"), "{stderr}");
    if stderr.contains("may not create network namespaces") {
        eprintln!("SKIPPED: {stderr}");
        return;
    }
    for said in [&stderr, &notes(&json)] {
        assert!(said.contains("no queueing discipline `htb`"), "{said}");
        assert!(said.contains("modprobe sch_htb"), "{said}");
    }
}

/// A result that cannot be written is refused before anything is measured.
#[test]
fn a_page_on_a_full_disk_is_refused_before_the_measurement() {
    let world = World::new();
    let disk = world.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=4k tmpfs {0} && head -c 4096 /dev/zero > {0}/full && exec {1} demo --html {0}/page.html",
        disk.display(),
        world.program().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        eprintln!("SKIPPED: unshare is missing");
        return;
    };
    let stderr = text(&output.stderr);
    if stderr.contains("unshare:") || stderr.contains("mount:") {
        eprintln!("SKIPPED: {stderr}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("'--html'") && stderr.contains("No space left"), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}
