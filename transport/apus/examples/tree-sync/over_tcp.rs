//! Transport of commands over a TCP connection.

use std::io::{self, BufReader, ErrorKind, IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use super::command::{FIXED, FileCommand, Lengths};
use super::store::{Store, check};
use super::{Failure, Times};

/// The system calls that send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// Head and content in one call.
    Gathered,
    /// The head and then the content: a common mistake, since it works.
    Split,
}

/// Longest reply in bytes. Chosen by us: an error message has some hundred bytes.
const LONGEST_REPLY: u32 = 65_536;

/// Serves a folder and lets `push` send commands to the server.
pub(super) fn run(
    to: &Path,
    writes: Writes,
    push: impl FnOnce(&mut dyn FnMut(FileCommand) -> Result<(), Failure>) -> Result<Times, Failure>,
) -> Result<Times, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (connection, _) = listener.accept()?;
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&connection, &Store::at(to)));
        let took = push(&mut |command| {
            send(&mut client, &command, writes)?;
            check(&read_reply(&mut client)?)
        });
        // Ends the server's input.
        drop(client);
        let served = server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let took = took?;
        served.map(|()| took)
    })
}

fn send(to: &mut TcpStream, command: &FileCommand, writes: Writes) -> io::Result<()> {
    let head = command.head();
    match writes {
        Writes::Split => {
            to.write_all(&head)?;
            to.write_all(&command.content)
        }
        Writes::Gathered => {
            let mut slices = [IoSlice::new(&head), IoSlice::new(&command.content)];
            let mut slices = &mut slices[..];
            // A long content may need several calls.
            while slices.iter().any(|slice| !slice.is_empty()) {
                match to.write_vectored(slices) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(written) => IoSlice::advance_slices(&mut slices, written),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}

/// Reads a reply: its length, then its text.
fn read_reply(from: &mut TcpStream) -> Result<Vec<u8>, Failure> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST_REPLY {
        return Err(format!("a reply of {length} bytes").into());
    }
    let mut reply = vec![0; length as usize];
    from.read_exact(&mut reply)?;
    Ok(reply)
}

/// Serves commands until the client closes the connection.
fn serve(connection: &TcpStream, store: &Store) -> Result<(), Failure> {
    let mut from = BufReader::new(connection);
    let mut to = connection;
    loop {
        let mut head = [0; FIXED];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let mut command = head.to_vec();
        command.resize(FIXED + Lengths::of(&head)?.total(), 0);
        from.read_exact(&mut command[FIXED..])?;
        let reply = store.reply(&command.into());
        // One write for length and text.
        let mut whole = (reply.len() as u32).to_be_bytes().to_vec();
        whole.extend(reply.bytes());
        to.write_all(&whole)?;
    }
}
