//! How does apus carry the demo's load?
//!
//! One endpoint on each side and one thread on each, with default parameters. The server answers
//! under a cork, so that replies which are ready leave together; the client's calls leave one by one,
//! as TCP's do, because the generator starts them when they are due. Payload is shared, not copied.

use std::net::SocketAddr;

use apus::{Bytes, Completion, Endpoint, Poll};

use super::contender::{Client, Contender};
use crate::apus::{open, serve_at, server};
use crate::error::Error;
use crate::process::Control;

/// Calls between two endpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apus;

impl Contender for Apus {
    fn name(&self) -> &'static str {
        "apus"
    }

    fn settings(&self) -> String {
        "one endpoint and one thread on each side, default parameters; the client sends each request \
         by itself, replies that are ready leave together"
            .to_owned()
    }

    fn serve(&self, poll: Poll, control: &mut Control) -> Result<(), Error> {
        let endpoint = serve_at(Endpoint::builder().poll(poll), control)?;
        let _together = endpoint.cork();
        server::echo(&endpoint)
    }

    fn connect(&self, server: SocketAddr, outstanding: usize) -> Result<Box<dyn Client>, Error> {
        // The generator looks again and again, and never wants to sleep.
        let endpoint = open(Endpoint::builder().poll(Poll::Spin).serve(false))?;
        // There are no connections, but peers that have met know each other's round trip time.
        endpoint
            .call(server, &[0])
            .map_err(|error| Error::endpoint(format!("call {server}"), error))?;
        let expected = vec![0; outstanding];
        Ok(Box::new(ApusClient { endpoint, server, payload: Bytes::new(), expected }))
    }
}

/// A client of one server.
struct ApusClient {
    endpoint: Endpoint,
    server: SocketAddr,
    /// The payload of every request.
    payload: Bytes,
    /// Bytes of the reply to each request, by its id.
    expected: Vec<u32>,
}

impl ApusClient {
    /// A payload of `size` bytes.
    fn payload(&mut self, size: usize) -> Bytes {
        if self.payload.len() < size {
            self.payload = vec![0; size.next_power_of_two()].into();
        }
        self.payload.slice(..size)
    }

    /// The id of a request that has ended as it should.
    fn check(&self, ended: Completion) -> Result<u32, Error> {
        let server = self.server;
        let reply =
            ended.result.map_err(|error| Error::endpoint(format!("call {server}"), error))?.len();
        let request = self.expected[ended.cookie as usize] as usize;
        if reply != request {
            return Err(Error::Peer(format!("{server} answered {request} bytes with {reply}")));
        }
        Ok(ended.cookie as u32)
    }
}

impl Client for ApusClient {
    fn start(&mut self, id: u32, size: u32) -> Result<(), Error> {
        let payload = self.payload(size as usize);
        self.expected[id as usize] = size;
        match self.endpoint.send(self.server, payload, u64::from(id)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::endpoint(format!("send to {}", self.server), error)),
        }
    }

    fn poll(&mut self, done: &mut Vec<u32>) -> Result<(), Error> {
        let server = self.server;
        let broken = |error| Error::endpoint(format!("receive from {server}"), error);
        while let Some(ended) = self.endpoint.try_recv().map_err(broken)? {
            done.push(self.check(ended)?);
        }
        Ok(())
    }
}
