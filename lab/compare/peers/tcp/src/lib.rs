//! Length-prefixed messages over a byte stream; each write sends all queued messages.

use std::io::{self, ErrorKind, Read, Write};

use compare_kit::{Connection, Error, answer, when_ready};

/// Messages of a connection.
#[derive(Debug)]
pub struct Messages<S> {
    stream: S,
    /// Bytes read; the first `used` bytes are consumed.
    input: Vec<u8>,
    used: usize,
    output: Vec<u8>,
}

/// Bytes of a length.
const PREFIX: usize = 4;
/// Maximum bytes per read.
const READ: usize = 1 << 18;

impl<S: Read + Write> Messages<S> {
    /// Returns the messages of a blocking or non-blocking stream.
    pub const fn new(stream: S) -> Self {
        Self { stream, input: Vec::new(), used: 0, output: Vec::new() }
    }

    /// Answers requests until the end of the stream, or until `is_over` returns true.
    ///
    /// # Errors
    ///
    /// The stream is broken.
    pub fn serve(&mut self, is_over: impl Fn() -> bool) -> io::Result<()> {
        loop {
            match self.next(&is_over) {
                Ok(Some(message)) => match answer(&message) {
                    Some(receipt) => self.put(&receipt),
                    None => self.put(&message),
                },
                Ok(None) => return Ok(()),
                // The client has ended with replies on their way.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Queues a message for the next write.
    fn put(&mut self, message: &[u8]) {
        self.output.extend_from_slice(&(message.len() as u32).to_be_bytes());
        self.output.extend_from_slice(message);
    }

    /// Returns the next message; `None` at the end of the connection, or if `is_over` returns true.
    /// Writes queued messages before waiting.
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

impl<S: Read + Write> Connection for Messages<S> {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.put(request);
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        *reply = self.next(|| false)?.ok_or("the server has closed the connection")?;
        Ok(())
    }
}
