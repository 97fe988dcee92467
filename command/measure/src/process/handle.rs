//! A running agent: a process, a thread, or a connection to a process elsewhere.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};

use super::control::{Runner, run_agent};
use super::protocol::AGENT;
use crate::error::Error;

/// Returns advice about the end of a process, given its exit status and standard error; `None` if
/// these need no explanation.
pub type Remedy = Box<dyn Fn(ExitStatus, &str) -> Option<String> + Send>;

/// Returns no advice: messages of this program need no explanation.
pub fn no_remedy() -> Remedy {
    Box::new(|_, _| None)
}

/// A running agent with its standard input and output.
pub struct RunningAgent {
    pub(super) body: AgentHandle,
    pub(super) to_agent: Box<dyn Write + Send>,
    pub(super) from_agent: Box<dyn Read + Send>,
}

/// Resources to end and wait for. The fields are empty afterwards.
pub(super) enum AgentHandle {
    /// A process, the thread that collects its standard error, and the advice about failures.
    Process(Child, Option<JoinHandle<String>>, Remedy),
    /// A thread of this process.
    Thread(Option<JoinHandle<Result<(), Error>>>),
    /// A process on another host, started by [`super::relay`].
    Connection(TcpStream),
}

impl RunningAgent {
    /// Starts the program as an agent; `prefix` is a command that runs the program.
    pub fn process(prefix: &[OsString], program: &OsStr, remedy: Remedy) -> io::Result<Self> {
        let mut words = prefix.iter().map(OsString::as_os_str).chain([program, OsStr::new(AGENT)]);
        let mut child = Command::new(words.next().expect("the program at least"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let to_agent = Box::new(child.stdin.take().expect("piped above"));
        let from_agent = Box::new(child.stdout.take().expect("piped above"));
        let mut stderr = child.stderr.take().expect("piped above");
        let complaints = thread::spawn(move || {
            let mut text = Vec::new();
            // After an error, only the text read so far can be shown.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let body = AgentHandle::Process(child, Some(complaints), remedy);
        Ok(Self { body, to_agent, from_agent })
    }

    /// Starts a thread of this process as an agent.
    pub fn thread(runner: Runner) -> io::Result<Self> {
        let (from_parent, to_agent) = io::pipe()?;
        let (from_agent, to_parent) = io::pipe()?;
        let thread = thread::Builder::new().name("agent".to_owned()).spawn(move || {
            run_agent(Box::new(BufReader::new(from_parent)), Box::new(to_parent), runner, || {})
        })?;
        Ok(Self {
            body: AgentHandle::Thread(Some(thread)),
            to_agent: Box::new(to_agent),
            from_agent: Box::new(from_agent),
        })
    }

    /// Wraps the connection to a relay.
    pub fn connection(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self {
            body: AgentHandle::Connection(stream.try_clone()?),
            to_agent: Box::new(stream.try_clone()?),
            from_agent: Box::new(stream.try_clone()?),
        })
    }
}

impl AgentHandle {
    /// Waits for an agent that has closed its output, and returns how it ended.
    pub(super) fn how_it_ended(&mut self) -> String {
        match self {
            Self::Process(child, complaints, remedy) => {
                let said = complaints.take().and_then(|thread| thread.join().ok());
                let said = said.unwrap_or_default();
                let status = match child.wait() {
                    Ok(status) => status,
                    Err(error) => return error.to_string(),
                };
                let how =
                    if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
                match remedy(status, &said) {
                    Some(remedy) => format!("{how}; {remedy}"),
                    None => how,
                }
            }
            Self::Thread(thread) => match thread.take().map(JoinHandle::join) {
                Some(Ok(Err(error))) => error.to_string(),
                Some(Err(_)) => "the thread panicked".to_owned(),
                Some(Ok(Ok(()))) | None => "ended without a result".to_owned(),
            },
            Self::Connection(_) => "its connection was closed".to_owned(),
        }
    }

    /// Sends a signal to the agent, if it is a process of this host.
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match self {
            // After the wait for a child, its process id may belong to another process.
            Self::Process(child, ..) => match child.try_wait()? {
                None => Ok(kill_process(Pid::from_child(child), signal)?),
                Some(_) => Err(io::ErrorKind::NotFound.into()),
            },
            Self::Thread(_) | Self::Connection(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the process id, if it is a process of this host.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process(child, ..) => Some(child.id()),
            Self::Thread(_) | Self::Connection(_) => None,
        }
    }

    /// Ends the agent unless it has ended already. Its input must be closed.
    pub(super) fn end_now(&mut self) {
        match self {
            Self::Process(child, ..) => {
                // Both fail only if the process has been waited for.
                let _ = child.kill();
                let _ = child.wait();
            }
            // Fails only if the other side has already closed it; otherwise the other side reads
            // the end of its input.
            Self::Connection(stream) => drop(stream.shutdown(Shutdown::Both)),
            // The thread reads the end of its input; a panic has been reported by the thread
            // itself.
            Self::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
        }
    }
}
