//! Aeron: a stream of requests and a stream of replies, over UDP or through shared memory.

use std::collections::VecDeque;
use std::net::SocketAddr;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, MAX_LENGTH, Peer, Server, Wait,
    Waits, answer, connections, free_address, name_of,
};
use rusteron_media_driver::{
    Aeron, AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader,
    AeronSubscription, BackoffIdleStrategy, BusySpinIdleStrategy, Handlers, IdleStrategy,
};

mod driver;

use driver::{Driver, channels};

/// Fragments that are received in one call.
const FRAGMENTS: usize = 16;

/// Aeron between hosts, or between processes of one.
#[derive(Debug)]
pub struct AeronStreams<const SAME_HOST: bool>;

impl<const SAME_HOST: bool> Peer for AeronStreams<SAME_HOST> {
    fn describe() -> Description {
        let (name, class, way) = if SAME_HOST {
            let way = "IPC, the C media driver of the server's process in a thread of its own";
            ("aeron-ipc", Class::SameHost, way)
        } else {
            let way = "UDP, a C media driver on each side that the calling thread runs (INVOKER), MTU 8 kB";
            ("aeron", Class::Clear, way)
        };
        Description {
            name: name.to_owned(),
            package: Some("rusteron-media-driver".to_owned()),
            settings: format!(
                "Aeron 1.54, an exclusive publication in each direction, {way}; it cannot sleep in the kernel, and where others do, it idles with its default back-off (spin, yield, park for 1 µs to 1 ms)"
            ),
            advice: "as its samples for low latency: no sparse term buffers, mapped memory touched before, buffers and windows of 2 MB if net.core.rmem_max allows that"
                .to_owned(),
            waits: Waits::Both,
            longest: Some(MAX_LENGTH),
            is_node: false,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
        let mut side = Side::open(address, SAME_HOST, true, server.wait)?;
        server.ready(address)?;
        let stop = server.stop();
        let mut requests = VecDeque::new();
        while !stop.is_asked() {
            side.poll(&mut requests)?;
            for request in requests.drain(..) {
                let receipt = answer(&request);
                let reply = receipt.as_ref().map_or(&request[..], |receipt| &receipt[..]);
                side.send(reply, || stop.is_asked())?;
            }
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let wait = client.wait;
        Ok(connections(move |server| {
            let side = Side::open(server, SAME_HOST, false, wait)?;
            while !(side.publication.is_connected() && side.subscription.is_connected()) {
                side.driver.work()?;
            }
            Ok(Calls { side, replies: VecDeque::new() })
        }))
    }
}

/// One end of both streams. Fields are dropped in their order: the driver last.
struct Side {
    publication: AeronExclusivePublication,
    subscription: AeronSubscription,
    assembler: AeronFragmentClosureAssembler,
    idle: Box<dyn IdleStrategy>,
    _aeron: Aeron,
    driver: Driver,
}

impl Side {
    fn open(server: SocketAddr, is_ipc: bool, is_server: bool, wait: Wait) -> Result<Self, Error> {
        let driver = Driver::open(&name_of(server), is_ipc, is_server)?;
        let aeron = driver.connect()?;
        let [requests, replies] = channels(server, is_ipc)?;
        let (from, to) = if is_server { (requests, replies) } else { (replies, requests) };
        let adding =
            aeron.async_add_subscription(&from.0, from.1, Handlers::NONE, Handlers::NONE)?;
        let subscription = driver.until(|| adding.poll())?;
        let adding = aeron.async_add_exclusive_publication(&to.0, to.1)?;
        let publication = driver.until(|| adding.poll())?;
        let idle: Box<dyn IdleStrategy> = match wait {
            Wait::Spin => Box::new(BusySpinIdleStrategy),
            Wait::Block => Box::new(BackoffIdleStrategy::new()),
        };
        let assembler = AeronFragmentClosureAssembler::new()?;
        Ok(Self { publication, subscription, assembler, idle, _aeron: aeron, driver })
    }

    /// Sends a message, unless `is_over` says first that it need not be sent any more.
    fn send(&self, message: &[u8], is_over: impl Fn() -> bool) -> Result<(), Error> {
        loop {
            match self.publication.offer(message) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_retryable() && is_over() => return Ok(()),
                Err(error) if error.is_retryable() => drop(self.driver.work()?),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Adds the messages that have arrived, or idles.
    fn poll(&mut self, messages: &mut VecDeque<Vec<u8>>) -> Result<(), Error> {
        let add = |messages: &mut VecDeque<Vec<u8>>, message: &[u8], _: AeronHeader| {
            messages.push_back(message.to_vec());
        };
        let polled = self.assembler.poll(&self.subscription, messages, add, FRAGMENTS)?;
        self.idle.idle(polled + self.driver.work()?);
        Ok(())
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    replies: VecDeque<Vec<u8>>,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.side.send(request, || false)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        while self.replies.is_empty() {
            self.side.poll(&mut self.replies)?;
        }
        reply.append(&mut self.replies.pop_front().unwrap_or_default());
        Ok(())
    }
}
