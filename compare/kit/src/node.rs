//! A peer as a transport: a server and a client of several others in one process.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use apus_contenders::transport::{self, Node, NodeOptions, PollMode, Transport};
use apus_testbed::error::Error as TestbedError;
use apus_testbed::process::Stop;

use crate::executor::Executor;
use crate::message::MAX_LENGTH;
use crate::program::{Client, Peer, Server};
use crate::{ThrowAwayKeys, Wait, Work};

/// A peer that carries requests of any size between hosts.
pub(crate) struct PeerTransport<P> {
    peer: PhantomData<fn() -> P>,
}

impl<P: Peer> PeerTransport<P> {
    pub(crate) const NEW: Self = Self { peer: PhantomData };
}

impl<P: Peer + 'static> Transport for PeerTransport<P> {
    fn name(&self) -> String {
        P::describe().name
    }

    fn settings(&self) -> String {
        P::describe().settings
    }

    fn connections(&self, _outstanding: usize) -> usize {
        1
    }

    fn open(&self, opening: &NodeOptions) -> Result<Box<dyn Node>, TestbedError> {
        let node = PeerNode::<P> {
            wait: if opening.poll == PollMode::Spin { Wait::Spin } else { Wait::Block },
            keys: opening.keys.clone().ok_or_else(|| failed("a node without keys"))?,
            bind: SocketAddr::from((opening.at, 0)),
            address: SocketAddr::from((opening.at, 0)),
            stop: Stop::default(),
            server: Mutex::new(None),
            peer: PhantomData,
        };
        Ok(Box::new(if opening.serve { node.serving()? } else { node }))
    }
}

/// The end of a server's thread.
type Ending = JoinHandle<Result<(), String>>;

/// A peer on one host.
struct PeerNode<P> {
    wait: Wait,
    keys: ThrowAwayKeys,
    bind: SocketAddr,
    /// Of the server, if there is one.
    address: SocketAddr,
    stop: Stop,
    server: Mutex<Option<Ending>>,
    peer: PhantomData<fn() -> P>,
}

impl<P: Peer + 'static> PeerNode<P> {
    /// Starts the server.
    fn serving(mut self) -> Result<Self, TestbedError> {
        let (ready, address) = mpsc::channel();
        let (wait, keys, bind, stop) = (self.wait, self.keys.clone(), self.bind, self.stop.clone());
        let thread = thread::spawn(move || {
            let mut report = |address| Ok(ready.send(address)?);
            let mut server = Server::new(wait, &keys, bind, stop, &mut report);
            P::serve(&mut server).map_err(|error| error.to_string())
        });
        match address.recv() {
            Ok(address) => self.address = address,
            // It has ended without one.
            Err(_) => {
                return Err(ended(thread)
                    .err()
                    .unwrap_or_else(|| failed("a server without an address")));
            }
        }
        self.server = Mutex::new(Some(thread));
        Ok(self)
    }
}

impl<P: Peer + 'static> Node for PeerNode<P> {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(&self, _receiver: usize, _stop: &Stop) -> Result<(), TestbedError> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        server.map_or(Ok(()), ended)
    }

    fn shutdown(&self) {
        self.stop.ask();
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    fn connect(
        &self,
        peers: &[SocketAddr],
        outstanding: usize,
    ) -> Result<Box<dyn transport::Client>, TestbedError> {
        let first = *peers.first().ok_or_else(|| failed("a client without servers"))?;
        let work = Work::Load { size: MAX_LENGTH, outstanding };
        let client = Client::new(self.wait, self.keys.clone(), self.bind, first, work);
        let connect = || {
            let executor = Executor::new()?;
            let connector = {
                let _inside = executor.enter();
                P::client(&client)?
            };
            connector.connect(peers, executor)
        };
        connect().map_err(|error: crate::Error| failed(&error.to_string()))
    }
}

/// Waits for the end of a server.
fn ended(server: Ending) -> Result<(), TestbedError> {
    let panicked = |_| Err("the server panicked".to_owned());
    server.join().unwrap_or_else(panicked).map_err(|error| failed(&error))
}

fn failed(what: &str) -> TestbedError {
    TestbedError::Peer(what.to_owned())
}
