//! Measures a client that sends and receives.

use std::collections::HashMap;
use std::time::Instant;

use crate::measured::{Window, cpu_nanos};
use crate::message::Messages;
use crate::{Client, Error, Measured};

/// A client's connection to its server.
pub trait Connection {
    /// Sends a request, or keeps it until [`Connection::receive`] is called.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn send(&mut self, request: &[u8]) -> Result<(), Error>;

    /// Waits for the next reply, of any of the requests, and writes it into `reply`, which is empty.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error>;
}

/// Measures the work of a client over a connection.
///
/// # Errors
///
/// The connection is broken, or a reply is wrong.
pub fn measure_connection(
    client: &Client,
    connection: &mut impl Connection,
) -> Result<Measured, Error> {
    let mut messages = Messages::of(client.work);
    let mut window = Window::after_warm_up(client.length);
    let mut began: HashMap<u64, Instant> = HashMap::new();
    let mut next = 0;
    let mut reply = Vec::new();
    loop {
        while began.len() < client.work.outstanding() {
            began.insert(next, Instant::now());
            connection.send(messages.request(next))?;
            next += 1;
        }
        reply.clear();
        connection.receive(&mut reply)?;
        let call = messages.call_of(&reply)?;
        let began = began.remove(&call).ok_or("a reply to no request")?;
        if !window.count(began, Instant::now()) {
            return Ok(window.close(cpu_nanos()));
        }
    }
}
