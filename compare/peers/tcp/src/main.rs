//! One TCP connection: a length before each message, and as many messages in a write as wait to be sent.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connection, Description, Error, Measured, Peer, Server, Wait, Waits, answer,
    measure_connection, run, when_ready,
};

struct Tcp;

impl Peer for Tcp {
    fn describe() -> Description {
        Description {
            name: "tcp".to_owned(),
            package: None,
            settings: "one connection, TCP_NODELAY, four bytes of length before each message, messages that are ready leave in one write"
                .to_owned(),
            advice: "TCP_NODELAY and whole messages in each write, as RFC 1122 and tcp(7) say for requests and replies".to_owned(),
            waits: Waits::Both,
            longest: None,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        server.stop().wake_with(move || drop(TcpStream::connect(address)));
        server.ready(address)?;
        let stop = server.stop();
        loop {
            let (stream, _) = listener.accept()?;
            if stop.is_asked() {
                return Ok(());
            }
            let mut messages = Messages::new(stream, server.wait)?;
            loop {
                match messages.next(|| stop.is_asked()) {
                    Ok(Some(message)) => match answer(&message) {
                        Some(receipt) => messages.put(&receipt),
                        None => messages.put(&message),
                    },
                    Ok(None) => break,
                    // The client has ended with replies on their way.
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn measure(client: &Client) -> Result<Measured, Error> {
        let stream = TcpStream::connect(client.server)?;
        measure_connection(client, &mut Messages::new(stream, client.wait)?)
    }
}

/// Messages of a connection.
struct Messages {
    stream: TcpStream,
    /// Bytes that were read, of which those up to `used` are done with.
    input: Vec<u8>,
    used: usize,
    output: Vec<u8>,
}

/// Bytes of a length.
const PREFIX: usize = 4;
/// Bytes that are read at a time.
const READ: usize = 1 << 18;

impl Messages {
    fn new(stream: TcpStream, wait: Wait) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(wait == Wait::Spin)?;
        Ok(Self { stream, input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Adds a message to those that leave with the next write.
    fn put(&mut self, message: &[u8]) {
        self.output.extend_from_slice(&(message.len() as u32).to_be_bytes());
        self.output.extend_from_slice(message);
    }

    /// Returns the next message; `None` at the end of the connection, or if `is_over` says so. What waits is written before it is waited for.
    fn next(&mut self, is_over: impl Fn() -> bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            let rest = &self.input[self.used..];
            if let Some((length, body)) = rest.split_first_chunk::<PREFIX>()
                && let Some(message) = body.get(..u32::from_be_bytes(*length) as usize)
            {
                let message = message.to_vec();
                self.used += PREFIX + message.len();
                return Ok(Some(message));
            }
            self.flush()?;
            self.input.drain(..self.used);
            self.used = 0;
            let filled = self.input.len();
            self.input.resize(filled + READ, 0);
            let read = when_ready(|| self.stream.read(&mut self.input[filled..]), &is_over)?;
            let bytes = read.unwrap_or(0);
            self.input.truncate(filled + bytes);
            if bytes == 0 {
                return Ok(None);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.output.len() {
            let write = || self.stream.write(&self.output[written..]);
            written += when_ready(write, || false)?.unwrap_or(0);
        }
        self.output.clear();
        Ok(())
    }
}

impl Connection for Messages {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.put(request);
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        *reply = self.next(|| false)?.ok_or("the server has closed the connection")?;
        Ok(())
    }
}

fn main() -> ExitCode {
    run::<Tcp>()
}
