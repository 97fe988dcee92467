//! `apus top` in a tmux terminal, with a service and its client. Without tmux a test prints a
//! message and passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::harness::{Service, run, text};
use crate::metrics::{HANGS, in_folder, service_and_client, stop};

/// A terminal that runs `apus top`. It ends with the test.
struct Terminal {
    /// Socket of a private tmux server, so that other sessions are unaffected.
    socket: PathBuf,
}

impl Terminal {
    /// Starts `apus top`, and saves the settings of the terminal before and after it. Prints its
    /// exit status when it ends. Returns `None`, with a message, without tmux.
    fn open(folder: &Path) -> Option<Self> {
        Self::open_named(folder, "")
    }

    /// Starts it as [`Terminal::open`] does, after the commands in `setting`.
    fn open_named(folder: &Path, setting: &str) -> Option<Self> {
        let terminal = Self { socket: folder.join("tmux") };
        let script = format!(
            "stty -g > {0}/before; sh -c 'echo $$ > {0}/pid; {setting} exec {1} top --interval 0.1'; echo status $?; stty -g > {0}/after; echo done; cat",
            folder.display(),
            env!("CARGO_BIN_EXE_apus")
        );
        let mut start = terminal.tmux();
        start.args(["-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "30"]);
        start.args(["sh", "-c", &script]);
        start
            .env("APUS_RUNTIME_DIR", folder.join("apus"))
            .env_remove("APUS_LIVE")
            .env_remove("TMUX");
        match start.output() {
            Ok(output) if output.status.success() => Some(terminal),
            Ok(output) => panic!("tmux: {}", text(&output.stderr)),
            Err(error) => {
                eprintln!("SKIPPED: `apus top` in a terminal: tmux: {error}");
                None
            }
        }
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).stdin(Stdio::null());
        tmux
    }

    /// Presses keys.
    fn press(&self, keys: &[&str]) {
        let sent = self.tmux().arg("send-keys").args(keys).status().unwrap();
        assert!(sent.success());
    }

    /// Returns the content of the screen.
    fn screen(&self) -> String {
        text(&self.tmux().args(["capture-pane", "-p"]).output().unwrap().stdout)
    }

    /// Waits until the screen meets a condition, and returns it.
    fn wait(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(began.elapsed() < HANGS, "never {what}:\n{screen}");
        }
    }

    /// Whether a program uses the alternate screen.
    fn is_alternate(&self) -> bool {
        let output =
            self.tmux().args(["display-message", "-p", "#{alternate_on}"]).output().unwrap();
        text(&output.stdout).trim() == "1"
    }

    /// Waits until `apus top` has ended with status 0, and asserts that the terminal is restored.
    fn assert_restored(&self, folder: &Path) {
        let screen = self.wait("the end", |screen| screen.lines().any(|line| line == "done"));
        assert!(screen.lines().any(|line| line == "status 0"), "{screen}");
        assert!(!self.is_alternate(), "{screen}");
        let settings =
            ["before", "after"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
        assert_eq!(settings[0], settings[1], "the terminal's settings");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // This ends only the server of this socket.
        let _ = self.tmux().arg("kill-server").output();
    }
}

#[test]
fn a_service_and_its_client_are_shown_until_q_is_pressed() {
    let folder = tempfile::tempdir().unwrap();
    let (service, client) = service_and_client(folder.path());
    let Some(terminal) = Terminal::open(folder.path()) else { return };
    let of = |pid: u32| {
        move |line: &&str| line.contains(&format!(" {pid} ")) || line.contains(&format!("│{pid} "))
    };
    let rate = |line: &str, column: usize| {
        let cells: Vec<_> = line.trim_matches('│').split_whitespace().collect();
        cells.get(column).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or(0.0)
    };
    // The client has a rate of calls, the service a rate of served requests.
    let screen = terminal.wait("rates", |screen| {
        let line = |pid| screen.lines().find(of(pid)).unwrap_or_default();
        rate(line(client.0.id()), 1) > 0.0 && rate(line(service.pid()), 2) > 0.0
    });
    assert!(terminal.is_alternate(), "{screen}");
    assert!(screen.contains("apus top: 2 processes") && screen.contains("q quit"), "{screen}");
    let line = screen.lines().find(of(client.0.id())).unwrap();
    assert!(rate(line, 4) > 0.0 && rate(line, 5) >= rate(line, 4), "round trips: {line}");
    assert!(screen.contains(&service.address()), "{screen}");

    let (first, second) = {
        let mut pids = [service.pid(), client.0.id()];
        pids.sort_unstable();
        (pids[0], pids[1])
    };
    let selected =
        |pid: u32| move |screen: &str| screen.contains(&format!("live RPCs of process {pid}:"));
    terminal.wait("the first selected", selected(first));
    terminal.press(&["Down"]);
    terminal.wait("the second selected", selected(second));
    terminal.press(&["Space"]);
    terminal.wait("paused", |screen| screen.contains(", paused"));
    terminal.press(&["Space", "+"]);
    terminal
        .wait("slower", |screen| !screen.contains(", paused") && screen.contains("every 0.200 s"));
    drop(client);
    terminal.wait("one process", |screen| screen.contains("apus top: 1 process,"));
    terminal.press(&["q"]);
    terminal.assert_restored(folder.path());
}

#[test]
fn ctrl_c_ends_the_view() {
    let folder = tempfile::tempdir().unwrap();
    let Some(terminal) = Terminal::open(folder.path()) else { return };
    terminal.wait("the hint", |screen| screen.contains("`apus serve` starts one"));
    terminal.press(&["C-c"]);
    terminal.assert_restored(folder.path());
}

#[test]
fn without_a_terminal_the_command_names_an_alternative() {
    let output = run(["top"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("needs a terminal") && stderr.contains("apus metrics --all"),
        "{stderr}"
    );
    let folder = tempfile::tempdir().unwrap();
    let output = in_folder(folder.path()).args(["top", "--interval", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// A terminal without a cursor would show escape sequences as text.
#[test]
fn a_dumb_terminal_is_refused() {
    for setting in ["export TERM=dumb;", "export TERM=;", "unset TERM;"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(terminal) = Terminal::open_named(folder.path(), setting) else { return };
        let screen = terminal.wait("the end", |screen| screen.lines().any(|line| line == "done"));
        assert!(screen.lines().any(|line| line == "status 1"), "{screen}");
        assert!(screen.contains("TERM") && screen.contains("apus metrics --all"), "{screen}");
        assert!(!terminal.is_alternate(), "{screen}");
    }
}

#[test]
fn a_stopped_process_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = Service::start_as(in_folder(folder.path()), &["--path", "udp"]);
    let (service, client) = service_and_client(folder.path());
    stop(&stopped);
    let Some(terminal) = Terminal::open(folder.path()) else { return };
    let screen = terminal.wait("all processes", |screen| {
        screen.contains("no response: it is stopped") && screen.contains(&service.address())
    });
    for pid in [stopped.pid(), service.pid(), client.0.id()] {
        assert!(screen.contains(&pid.to_string()), "{pid}: {screen}");
    }
    terminal.press(&["q"]);
    terminal.assert_restored(folder.path());
}

#[test]
fn the_view_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let Some(terminal) = Terminal::open(folder.path()) else { return };
    terminal.wait("the view", |screen| screen.contains("apus top:"));
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let is_running = || {
        let line = fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        line.contains("--interval")
    };
    assert!(is_running());
    drop(terminal);
    let began = Instant::now();
    while is_running() {
        assert!(began.elapsed() < HANGS, "the process outlives its terminal");
    }
}
