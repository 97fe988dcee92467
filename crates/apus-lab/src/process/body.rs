//! What is an agent made of: a process, or a thread?

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use super::control::live;
use super::{AGENT, Runner};
use crate::error::Error;

/// A body with its standard input and output.
pub(super) struct Embodied {
    pub(super) body: Body,
    pub(super) to_agent: Box<dyn Write + Send>,
    pub(super) from_agent: Box<dyn Read + Send>,
}

/// Something that runs, and what it leaves behind. The fields are empty once it has been ended.
pub(super) enum Body {
    /// A process, and the thread that collects what it writes to standard error.
    Process(Child, Option<JoinHandle<String>>),
    /// A thread of this process.
    Thread(Option<JoinHandle<Result<(), Error>>>),
}

impl Embodied {
    /// Runs the program, as the last but one argument of a command if there is a prefix.
    pub(super) fn process(prefix: &[OsString], program: &OsStr) -> io::Result<Self> {
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
            // What could be read before an error is all there is to show.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        Ok(Self { body: Body::Process(child, Some(complaints)), to_agent, from_agent })
    }

    pub(super) fn thread(runner: Runner) -> io::Result<Self> {
        let (from_parent, to_agent) = io::pipe()?;
        let (from_agent, to_parent) = io::pipe()?;
        let thread = thread::Builder::new().name("agent".to_owned()).spawn(move || {
            live(Box::new(BufReader::new(from_parent)), Box::new(to_parent), runner, || {})
        })?;
        Ok(Self {
            body: Body::Thread(Some(thread)),
            to_agent: Box::new(to_agent),
            from_agent: Box::new(from_agent),
        })
    }
}

impl Body {
    /// Waits for a body that has closed its output, and says how it ended.
    pub(super) fn how_it_ended(&mut self) -> String {
        match self {
            Self::Process(child, complaints) => {
                let status = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
                let said = complaints.take().and_then(|thread| thread.join().ok());
                match said.filter(|said| !said.is_empty()) {
                    Some(said) => format!("{status}: {said}"),
                    None => status,
                }
            }
            Self::Thread(thread) => match thread.take().map(JoinHandle::join) {
                Some(Ok(Err(error))) => error.to_string(),
                Some(Err(_)) => "the thread panicked".to_owned(),
                Some(Ok(Ok(()))) | None => "ended without a result".to_owned(),
            },
        }
    }

    /// Ends it, if it has not ended by itself; its input must be closed.
    pub(super) fn end_now(&mut self) {
        match self {
            Self::Process(child, _) => {
                // Both fail only if it has been waited for.
                let _ = child.kill();
                let _ = child.wait();
            }
            // It has been told to stop; a panic has been reported by the thread itself.
            Self::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
        }
    }
}
