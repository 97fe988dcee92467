//! Relay: connects an agent on this host to its parent on another host.
//!
//! The parent cannot start a process here. The relay starts the agent and copies lines between it
//! and the connection without parsing them. The end of either side ends the other, so that AGENT-1
//! holds across hosts. The last line reports how the agent ended.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::handle::RunningAgent;
use super::handle::no_remedy;
use super::protocol::{AgentMessage, MAX_LINE, ParentMessage, Task, read_text, write_line};
use crate::error::{Doing, Error};

/// A line and its source side; `None` marks the end of that side.
enum Line {
    FromParent(Option<Vec<u8>>),
    FromAgent(Option<Vec<u8>>),
}

/// Starts the program as an agent for a task, and copies lines until one side ends.
///
/// # Errors
///
/// The connection cannot be used. Failures of the agent are reported to the parent instead.
pub fn relay(program: &OsStr, task: Task, from_parent: BufReader<TcpStream>) -> Result<(), Error> {
    let talk = || format!("talk to the parent of {}", task.name);
    let mut to_parent = from_parent.get_ref().try_clone().doing(talk)?;
    match RunningAgent::process(&[], program, no_remedy()) {
        Ok(agent) => carry(agent, task, from_parent, &mut to_parent),
        Err(error) => {
            let why = format!("start {}: {error}", program.display());
            // An ended parent needs no report.
            let _ = write_line(&mut to_parent, &AgentMessage::Failed(why));
        }
    }
    // Fails only if the parent has ended.
    let _ = to_parent.shutdown(Shutdown::Both);
    Ok(())
}

fn carry(
    agent: RunningAgent,
    task: Task,
    from_parent: BufReader<TcpStream>,
    to_parent: &mut TcpStream,
) {
    let RunningAgent { mut body, mut to_agent, from_agent } = agent;
    let (sender, lines) = mpsc::channel();
    read(from_parent, sender.clone(), Line::FromParent);
    read(BufReader::new(from_agent), sender, Line::FromAgent);
    // An agent that does not read its task has ended; its output reports that.
    let _ = write_line(&mut *to_agent, &ParentMessage::Task(task));
    for line in lines {
        match line {
            Line::FromParent(Some(line)) => {
                let _ = to_agent.write_all(&line).and_then(|()| to_agent.flush());
            }
            Line::FromAgent(Some(line)) if to_parent.write_all(&line).is_ok() => {}
            Line::FromAgent(None) => {
                let how = body.how_it_ended();
                let _ = write_line(to_parent, &AgentMessage::Ended { how });
                return;
            }
            Line::FromParent(None) | Line::FromAgent(Some(_)) => {
                drop(to_agent);
                return body.end_now();
            }
        }
    }
}

/// Forwards lines as they arrive, until the end.
fn read(
    mut from: impl BufRead + Send + 'static,
    lines: Sender<Line>,
    side: fn(Option<Vec<u8>>) -> Line,
) {
    thread::spawn(move || {
        loop {
            let line = read_text(&mut from, MAX_LINE).unwrap_or_default();
            let last = line.is_none();
            if lines.send(side(line)).is_err() || last {
                return;
            }
        }
    });
}
