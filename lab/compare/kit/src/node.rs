//! A peer as a transport: a server and a client of several others in one process.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use apus_bench::contenders::transport::{self, Node, NodeOptions, PollMode, Transport};
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

/// A peer on a host.
struct PeerNode<P> {
    wait: Wait,
    keys: ThrowAwayKeys,
    bind: SocketAddr,
    /// Address of the server, if it exists.
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
            // The server exited without an address.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Caller, Class, Connection, Connector, Description, Error, InOrder, Waits, caller, calls,
        connections, serve_async,
    };
    use apus_bench::contenders::load::{Idle, unloaded};
    use apus_bench::contenders::transport::Completions;
    use bytes::Bytes;
    use std::io::{Read, Write};
    use std::net::TcpStream as Blocking;
    use std::os::fd::{AsRawFd, RawFd};
    use std::time::Duration;
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Sizes of the requests.
    const SIZES: [u32; 3] = [1, 100, 100_000];

    /// Clients whose calls are futures.
    const FUTURES: u8 = 0;
    /// Clients that send and receive.
    const CONNECTIONS: u8 = 1;
    /// Clients that await all servers together.
    const CALLER: u8 = 2;

    /// Echoes; if `WRONG`, with another first byte.
    struct Echo<const WRONG: bool, const CLIENTS: u8>;

    impl<const WRONG: bool, const CLIENTS: u8> Peer for Echo<WRONG, CLIENTS> {
        fn describe() -> Description {
            Description {
                name: "echo".to_owned(),
                package: None,
                settings: "none".to_owned(),
                advice: String::new(),
                waits: Waits::Block,
                longest: None,
                is_node: true,
                grows: true,
                class: Class::Clear,
            }
        }

        fn serve(server: &mut Server<'_>) -> Result<(), Error> {
            let bind = server.bind;
            serve_async(server, async move || {
                let listener = TcpListener::bind(bind).await?;
                let address = listener.local_addr()?;
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(echo::<WRONG>(stream));
                    }
                });
                Ok(address)
            })
        }

        fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
            let stream = |server| Ok(Stream(Blocking::connect(server)?));
            if CLIENTS == CONNECTIONS {
                return Ok(connections(stream));
            }
            if CLIENTS == CALLER {
                return Ok(caller(move |servers| {
                    let streams = servers.iter().copied().map(stream);
                    let streams = streams.collect::<Result<Vec<_>, Error>>()?;
                    Ok(Streams { order: InOrder::new(streams.len()), streams })
                }));
            }
            Ok(calls(async |server: SocketAddr| {
                Ok(async move |request: Bytes| {
                    let mut stream = TcpStream::connect(server).await?;
                    stream.write_u32(request.len() as u32).await?;
                    stream.write_all(&request).await?;
                    let mut reply = Vec::new();
                    let length = stream.read_u32().await? as usize;
                    reply.resize(length, 0);
                    stream.read_exact(&mut reply).await?;
                    Ok(reply.into())
                })
            }))
        }
    }

    async fn echo<const WRONG: bool>(mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut message = vec![0; stream.read_u32().await? as usize];
            stream.read_exact(&mut message).await?;
            if WRONG {
                message[0] ^= 1;
            }
            stream.write_u32(message.len() as u32).await?;
            stream.write_all(&message).await?;
        }
    }

    /// A connection whose replies are read once their first bytes have arrived.
    struct Stream(Blocking);

    impl Connection for Stream {
        fn send(&mut self, request: &[u8]) -> Result<(), Error> {
            self.0.write_all(&(request.len() as u32).to_be_bytes())?;
            Ok(self.0.write_all(request)?)
        }

        fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
            let mut length = [0; 4];
            self.0.read_exact(&mut length)?;
            reply.resize(u32::from_be_bytes(length) as usize, 0);
            Ok(self.0.read_exact(reply)?)
        }

        fn try_receive(&mut self, reply: &mut Vec<u8>) -> Result<bool, Error> {
            self.0.set_nonblocking(true)?;
            let there = self.0.peek(&mut [0; 4]);
            self.0.set_nonblocking(false)?;
            if there.is_err() {
                return Ok(false);
            }
            self.receive(reply).map(|()| true)
        }

        fn descriptor(&self) -> Option<RawFd> {
            Some(self.0.as_raw_fd())
        }
    }

    /// Connections polled round robin.
    struct Streams {
        streams: Vec<Stream>,
        order: InOrder,
    }

    impl Caller for Streams {
        fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error> {
            self.order.add(server, call);
            self.streams[server].send(request)
        }

        fn receive(
            &mut self,
            wait: Option<Duration>,
            reply: &mut Vec<u8>,
        ) -> Result<Option<u64>, Error> {
            for (server, stream) in self.streams.iter_mut().enumerate() {
                if stream.try_receive(reply)? {
                    return self.order.take(server).map(Some);
                }
            }
            thread::sleep(wait.unwrap_or_default().min(Duration::from_micros(100)));
            Ok(None)
        }
    }

    /// Calls `work` with a client of two nodes.
    fn with_client<P: Peer + 'static>(work: impl FnOnce(&mut dyn transport::Client)) {
        let folder = TempDir::new().unwrap();
        let keys = Some(ThrowAwayKeys::create(folder.path()).unwrap());
        let options = |serve| NodeOptions {
            keys: keys.clone(),
            ..NodeOptions::on_loopback(PollMode::Block, serve)
        };
        let transport = PeerTransport::<P>::NEW;
        let nodes = [0, 1].map(|_| transport.open(&options(true)).unwrap());
        let addresses = nodes.each_ref().map(|node| node.address());
        {
            let client = transport.open(&options(false)).unwrap();
            work(&mut *client.connect(&addresses, 8).unwrap());
        }
        for node in nodes {
            node.shutdown();
            node.serve(0, &Stop::default()).unwrap();
        }
    }

    #[test]
    fn a_peer_carries_requests_of_any_size() {
        fn carries<P: Peer + 'static>() {
            with_client::<P>(|client| {
                let best = unloaded(client, &SIZES, 0, Idle::Wait).unwrap();
                assert_eq!(best.iter().map(|&(size, _)| size).collect::<Vec<_>>(), SIZES);
            });
        }
        carries::<Echo<false, { FUTURES }>>();
        carries::<Echo<false, { CONNECTIONS }>>();
        carries::<Echo<false, { CALLER }>>();
    }

    #[test]
    fn calls_of_several_nodes_are_outstanding_together() {
        fn carries<P: Peer + 'static>() {
            with_client::<P>(|client| {
                for id in 0..8 {
                    client.start(id, id as usize % 2, 1 + id * 1_000).unwrap();
                }
                let mut ended = Completions::default();
                while ended.completed.len() < 8 {
                    client.poll(Duration::from_secs(1), &mut ended).unwrap();
                    assert_eq!(ended.problem(), None);
                }
                ended.completed.sort_unstable();
                assert_eq!(ended.completed, [0, 1, 2, 3, 4, 5, 6, 7]);
            });
        }
        carries::<Echo<false, { FUTURES }>>();
        carries::<Echo<false, { CONNECTIONS }>>();
        carries::<Echo<false, { CALLER }>>();
    }

    #[test]
    fn a_wrong_reply_is_a_failure() {
        fn fails<P: Peer + 'static>() {
            with_client::<P>(|client| {
                let error = unloaded(client, &SIZES, 0, Idle::Wait).unwrap_err().to_string();
                assert!(error.contains("a wrong reply") && error.contains("Some(0)"), "{error}");
            });
        }
        fails::<Echo<true, { FUTURES }>>();
        fails::<Echo<true, { CONNECTIONS }>>();
        fails::<Echo<true, { CALLER }>>();
    }
}
