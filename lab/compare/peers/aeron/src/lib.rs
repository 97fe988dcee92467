//! Aeron: a stream of requests to each server and a stream of replies, over UDP or through shared
//! memory.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::net::SocketAddr;
use std::time::Duration;

use compare_kit::{
    Caller, Class, Client, Connector, Description, Error, InOrder, MAX_LENGTH, Peer, Server, Wait,
    Waits, answer, caller, free_address,
};
use rusteron_media_driver::AeronExclusivePublication;

mod driver;
mod side;

use driver::Driver;
use side::{REPLIES, REQUESTS, Side, channel, offer};

/// Aeron between hosts, or between processes of one host.
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
                "Aeron 1.54, an exclusive publication to each server and to each client, {way}; it cannot sleep in the kernel, and where others do, it idles with its default back-off (spin, yield, park for 1 µs to 1 ms)"
            ),
            advice: "as its samples for low latency: no sparse term buffers, mapped memory touched before, buffers and windows of 2 MB if net.core.rmem_max allows that"
                .to_owned(),
            waits: Waits::Both,
            longest: Some(MAX_LENGTH),
            is_node: !SAME_HOST,
            grows: false,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
        let driver = if SAME_HOST { Driver::launched(address)? } else { Driver::invoked()? };
        let requests = channel(address, SAME_HOST, None)?;
        let mut side = Side::open(driver, &requests, REQUESTS, server.wait)?;
        server.ready(address)?;
        let stop = server.stop();
        let mut clients: HashMap<i32, AeronExclusivePublication> = HashMap::new();
        while !stop.is_asked() {
            let Some((session, request)) = side.receive(true)? else { continue };
            let Some(client) = clients.get(&session) else {
                // The first message of a session is the channel for its replies.
                clients.insert(session, side.publish(&CString::new(request)?, REPLIES)?);
                continue;
            };
            let receipt = answer(&request);
            let reply = receipt.as_ref().map_or(&request[..], |receipt| &receipt[..]);
            side.send(client, reply, || stop.is_asked())?;
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let (bind, wait) = (client.bind, client.wait);
        Ok(caller(move |servers| Calls::connect(servers, bind, SAME_HOST, wait)))
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    servers: Vec<Session>,
    order: InOrder,
}

/// The stream of requests to a server; its replies have the same session id.
struct Session {
    id: i32,
    requests: AeronExclusivePublication,
    /// Requests rejected by back pressure.
    unsent: VecDeque<Vec<u8>>,
}

impl Calls {
    fn connect(
        servers: &[SocketAddr],
        bind: SocketAddr,
        is_same_host: bool,
        wait: Wait,
    ) -> Result<Self, Error> {
        let driver = if is_same_host { Driver::of(servers[0])? } else { Driver::invoked()? };
        let address = free_address(bind)?;
        let replies = channel(address, is_same_host, None)?;
        let mut side = Side::open(driver, &replies, REPLIES, wait)?;
        let mut sessions = Vec::with_capacity(servers.len());
        for &server in servers {
            let requests = side.publish(&channel(server, is_same_host, None)?, REQUESTS)?;
            let id = requests.get_constants()?.session_id();
            let replies = channel(address, is_same_host, Some(id))?;
            side.send(&requests, replies.to_bytes(), || false)?;
            sessions.push(Session { id, requests, unsent: VecDeque::new() });
        }
        while side.sessions()? < servers.len() {
            side.receive(false)?;
        }
        Ok(Self { side, servers: sessions, order: InOrder::new(servers.len()) })
    }
}

impl Caller for Calls {
    fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error> {
        self.order.add(server, call);
        let Session { requests, unsent, .. } = &mut self.servers[server];
        if !unsent.is_empty() || !offer(requests, request)? {
            unsent.push_back(request.to_vec());
        }
        Ok(())
    }

    fn receive(
        &mut self,
        wait: Option<Duration>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        for Session { requests, unsent, .. } in &mut self.servers {
            while let Some(request) = unsent.front()
                && offer(requests, request)?
            {
                unsent.pop_front();
            }
        }
        let may_idle = wait != Some(Duration::ZERO);
        let Some((session, message)) = self.side.receive(may_idle)? else { return Ok(None) };
        *reply = message;
        let server = self.servers.iter().position(|it| it.id == session);
        Ok(Some(self.order.take(server.ok_or("a reply of an unknown server")?)?))
    }
}
