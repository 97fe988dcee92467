//! Background process: started by a command, and detached from it once ready.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use apus_command_line::failure::Failure;

/// Socket of the system log.
const SYSLOG: &str = "/dev/log";
/// Facility daemon and severity warning (RFC 5424, section 6.2.1).
const PRIORITY: u32 = 3 * 8 + 4;

/// Starts this program again with these arguments, and waits for its first line on standard output,
/// which signals readiness.
///
/// # Errors
///
/// The process ended before it was ready; the reason is on standard error.
pub(super) fn start(words: &[OsString]) -> Result<String, Failure> {
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::of("start a process in the background", &error))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| Failure::of("wait for the process in the background", &error))?;
    }
    if !line.is_empty() {
        return Ok(line.trim_end().to_owned());
    }
    let status = child.wait().map_err(|error| Failure::of("wait for the mount", &error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    Err(Failure::Found(code.unwrap_or(1)))
}

/// Detaches this process from the command that started it: from its terminal, directory and
/// standard streams.
///
/// # Errors
///
/// The system's.
pub(super) fn detach() -> io::Result<()> {
    // Fails if this process already leads a group, which a shell may have arranged.
    let _ = rustix::process::setsid();
    env::set_current_dir("/")?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Returns a reporter that forwards lines to the system log and to standard error.
pub(super) fn log() -> apus_fs::Report {
    let socket = UnixDatagram::unbound().ok();
    Box::new(move |line| {
        apus_command_line::output::note(line);
        if let Some(socket) = &socket {
            let message = format!("<{PRIORITY}>apus-fs[{}]: {line}", std::process::id());
            // A missing system log must not fail the mount.
            let _ = socket.send_to(message.as_bytes(), SYSLOG);
        }
    })
}
