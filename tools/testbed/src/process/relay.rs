//! How does an agent live at the other end of a connection?
//!
//! The parent is on another host and cannot start a process here. Whoever is here already starts the
//! agent and carries lines between it and the connection, without understanding them. The end of either
//! is the end of the other, so that A1 holds across hosts; how the agent ended is the last line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::body::Embodied;
use super::host::no_remedy;
use super::lines::{LONGEST, Order, Report, Task, read_text, write_line};
use crate::error::{Doing, Error};

/// A line, with the side that it came from; `None` is the end of that side.
enum Line {
    FromParent(Option<Vec<u8>>),
    FromAgent(Option<Vec<u8>>),
}

/// Starts the program as an agent for a task and carries lines until one side ends.
///
/// # Errors
///
/// The connection cannot be used. What becomes of the agent is the parent's to hear.
pub(crate) fn relay(
    program: &OsStr,
    task: Task,
    from_parent: BufReader<TcpStream>,
) -> Result<(), Error> {
    let talk = || format!("talk to the parent of {}", task.name);
    let mut to_parent = from_parent.get_ref().try_clone().doing(talk)?;
    match Embodied::process(&[], program, no_remedy()) {
        Ok(embodied) => carry(embodied, task, from_parent, &mut to_parent),
        Err(error) => {
            let why = format!("start {}: {error}", program.display());
            // A parent that is gone need not know.
            let _ = write_line(&mut to_parent, &Report::Failed(why));
        }
    }
    // Fails only if the parent is gone already.
    let _ = to_parent.shutdown(Shutdown::Both);
    Ok(())
}

fn carry(
    embodied: Embodied,
    task: Task,
    from_parent: BufReader<TcpStream>,
    to_parent: &mut TcpStream,
) {
    let Embodied { mut body, mut to_agent, from_agent } = embodied;
    let (sender, lines) = mpsc::channel();
    read(from_parent, sender.clone(), Line::FromParent);
    read(BufReader::new(from_agent), sender, Line::FromAgent);
    // An agent that does not take what it is told has ended, and its output will say so.
    let _ = write_line(&mut *to_agent, &Order::Task(task));
    for line in lines {
        match line {
            Line::FromParent(Some(line)) => {
                let _ = to_agent.write_all(&line).and_then(|()| to_agent.flush());
            }
            Line::FromAgent(Some(line)) if to_parent.write_all(&line).is_ok() => {}
            Line::FromAgent(None) => {
                let how = body.how_it_ended();
                let _ = write_line(to_parent, &Report::Ended { how });
                return;
            }
            Line::FromParent(None) | Line::FromAgent(Some(_)) => {
                drop(to_agent);
                return body.end_now();
            }
        }
    }
}

/// Sends lines on as they come, until the end.
fn read(
    mut from: impl BufRead + Send + 'static,
    lines: Sender<Line>,
    side: fn(Option<Vec<u8>>) -> Line,
) {
    thread::spawn(move || {
        loop {
            let line = read_text(&mut from, LONGEST).unwrap_or_default();
            let last = line.is_none();
            if lines.send(side(line)).is_err() || last {
                return;
            }
        }
    });
}
