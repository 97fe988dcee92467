//! A server, and clients that send whatever a test chooses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use apus_fs_core::rights::Rights;
use apus_fs_core::server::{CallToken, CallbackToken, Server, ServerEffect, ServerSettings};
use apus_fs_core::wire::frame::{decode, encode};
use apus_fs_core::wire::{
    Batch, BatchDone, Callback, CallbackResponse, Failure, FoundNode, Handle, Hello, Ino, InoRange,
    LeaseKind, LookUp, Name, NewNode, PathStep, RecalledNode, Record, Request, Response,
    SessionRequest, Time, WantedLease, Welcome, WireVersion,
};
use bytes::Bytes;

use crate::copies::Copies;
use crate::store::SmallStore;

/// Index of a client of the world.
pub(crate) type Id = usize;

pub(crate) const TERM: Duration = Duration::from_secs(10);

/// A response that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) response: Response,
    pub(crate) payload: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct FakeClient {
    pub(crate) session: u64,
    pub(crate) range: (u64, u64, u64),
    pub(crate) created: u64,
    pub(crate) batches: u64,
}

pub(crate) struct World {
    pub(crate) server: Server<SmallStore>,
    pub(crate) now: Duration,
    pub(crate) clients: BTreeMap<Id, FakeClient>,
    /// The exported directory: its handle is the same in all sessions.
    pub(crate) root: Handle,
    /// Handles that the server has named to any client.
    pub(crate) handles: BTreeMap<Ino, Handle>,
    pub(crate) copies: Copies,
    /// Rights of clients that may not do everything.
    pub(crate) rights: BTreeMap<Id, Rights>,
    taken: BTreeMap<CallbackToken, (Id, Vec<RecalledNode>)>,
    calls: u64,
    unanswered: BTreeSet<CallToken>,
    responses: BTreeMap<CallToken, Arrived>,
    callbacks: VecDeque<(CallbackToken, Id, Callback)>,
}

/// The address of a client. Each host has 256 of them.
pub(crate) fn peer(client: Id) -> SocketAddr {
    SocketAddr::from(([10, 0, (client >> 8) as u8, 1], client as u16))
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name.as_bytes().to_vec()).unwrap()
}

pub(crate) fn settings() -> ServerSettings {
    ServerSettings { term: TERM, grace: false, inos: 1_000, ..ServerSettings::default() }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(SmallStore::new(), settings())
    }

    pub(crate) fn with(store: SmallStore, settings: ServerSettings) -> Self {
        let now = Duration::from_secs(1_000);
        Self {
            server: Server::new(store, settings, now).unwrap(),
            now,
            clients: BTreeMap::new(),
            root: Handle::created(Ino::ROOT),
            handles: BTreeMap::new(),
            copies: Copies::default(),
            rights: BTreeMap::new(),
            taken: BTreeMap::new(),
            calls: 0,
            unanswered: BTreeSet::new(),
            responses: BTreeMap::new(),
            callbacks: VecDeque::new(),
        }
    }

    /// A world with clients 0 to `clients - 1`, which have no leases.
    pub(crate) fn with_clients(clients: Id) -> Self {
        let mut world = Self::new();
        for id in 0..clients {
            world.join(id);
            world.release_all(id, &[world.root]);
        }
        world
    }

    /// Restarts the server: uncommitted batches and its calls are lost. Its clients have not
    /// noticed yet.
    pub(crate) fn restart(&mut self) {
        let other = Server::new(SmallStore::new(), settings(), self.now).unwrap();
        let mut store = std::mem::replace(&mut self.server, other).into_store();
        store.crash();
        let settings = ServerSettings { grace: true, ..settings() };
        self.server = Server::new(store, settings, self.now).unwrap();
        self.copies.restart();
        self.unanswered.clear();
        self.callbacks.clear();
        self.taken.clear();
    }

    pub(crate) fn send_bytes(&mut self, id: Id, message: Bytes) -> CallToken {
        self.calls += 1;
        let call = CallToken(self.calls);
        self.unanswered.insert(call);
        let request = decode::<Request>(message.clone()).ok().map(|decoded| decoded.message);
        self.copies.send(id, self.now, call, request);
        let rights = self.rights.get(&id).cloned().unwrap_or_default();
        self.server.handle_request_as(self.now, peer(id), rights, call, message);
        self.take_effects();
        call
    }

    pub(crate) fn send(&mut self, id: Id, request: SessionRequest) -> CallToken {
        self.send_with(id, request, b"")
    }

    pub(crate) fn send_with(
        &mut self,
        id: Id,
        request: SessionRequest,
        payload: &[u8],
    ) -> CallToken {
        let session = self.clients[&id].session;
        let message = [&encode(&Request::Of { session, request }), payload].concat();
        self.send_bytes(id, message.into())
    }

    pub(crate) fn poll(&mut self) {
        self.server.poll(self.now).unwrap();
        self.take_effects();
    }

    /// Advances time, with a poll at each deadline.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.server.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(deadline);
            self.poll();
            let next = self.server.next_deadline();
            assert!(next.is_none_or(|next| next > self.now), "poll has left a deadline behind");
        }
        self.now = end;
        self.poll();
    }

    fn take_effects(&mut self) {
        while let Some(effect) = self.server.take_effect() {
            match effect {
                ServerEffect::Respond { call, header, payload } => {
                    assert!(self.unanswered.remove(&call), "FSSERVE-12: a second response");
                    let bytes = [&[header], &payload[..]].concat().concat();
                    let decoded = decode::<Response>(bytes.into()).unwrap();
                    let payload = decoded.payload.to_vec();
                    self.copies.receive(call, &decoded.message, &mut self.handles);
                    self.responses.insert(call, Arrived { response: decoded.message, payload });
                }
                ServerEffect::Call { callback, peer, message } => {
                    let message = decode::<Callback>(message).unwrap().message;
                    if matches!(message, Callback::Fence { .. }) {
                        self.copies.fence(peer.port().into());
                    }
                    self.callbacks.push_back((callback, peer.port().into(), message));
                }
            }
        }
    }

    /// FSSERVE-1 to FSSERVE-6, as clients see them.
    pub(crate) fn check_copies(&self) {
        self.copies.check(self.now, self.server.store());
    }

    /// The response to a call, if it has arrived.
    pub(crate) fn response(&mut self, call: CallToken) -> Option<Response> {
        self.responses.remove(&call).map(|arrived| arrived.response)
    }

    pub(crate) fn is_waiting(&self, call: CallToken) -> bool {
        self.unanswered.contains(&call)
    }

    /// Number of calls without a response.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Sends a request that is answered at once, or at the next commit.
    pub(crate) fn ask_with(&mut self, id: Id, request: SessionRequest, payload: &[u8]) -> Arrived {
        let call = self.send_with(id, request, payload);
        self.poll();
        self.responses.remove(&call).expect("the request waits")
    }

    pub(crate) fn ask(&mut self, id: Id, request: SessionRequest) -> Response {
        self.ask_with(id, request, b"").response
    }

    pub(crate) fn hello(id: Id) -> Hello {
        Hello {
            oldest: WireVersion::OLDEST,
            newest: WireVersion::CURRENT,
            client: [id as u8 + 1; 16],
            name: format!("client {id}").into(),
            session: None,
            ranges: Vec::new(),
            read_only: false,
            export: Bytes::new(),
            greeting: 0,
        }
    }

    pub(crate) fn greet(&mut self, id: Id, hello: Hello) -> Result<Welcome, Failure> {
        let call = self.send_bytes(id, encode(&Request::Hello(hello)));
        match self.response(call).expect("Hello is answered at once") {
            Response::Welcome(welcome) => {
                let client = self.clients.entry(id).or_default();
                client.session = welcome.session;
                client.range = (welcome.first_ino, welcome.inos, welcome.inos_proof);
                client.created = 0;
                client.batches = welcome.applied;
                self.root = welcome.root.handle;
                Ok(welcome)
            }
            Response::Failed(failure) => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    /// Starts a session.
    pub(crate) fn join(&mut self, id: Id) -> Welcome {
        self.greet(id, Self::hello(id)).unwrap()
    }

    pub(crate) fn range(&self, id: Id) -> InoRange {
        let (first, count, proof) = self.clients[&id].range;
        InoRange { first, count, proof }
    }

    /// The next callback that was sent to a client.
    pub(crate) fn callback(&mut self, id: Id) -> Option<(CallbackToken, Callback)> {
        let at = self.callbacks.iter().position(|(_, to, _)| *to == id)?;
        let (token, _, callback) = self.callbacks.remove(at)?;
        if let Callback::Recall { nodes, .. } = &callback {
            self.taken.insert(token, (id, nodes.clone()));
        }
        Some((token, callback))
    }

    /// The nodes of the next recall that was sent to a client.
    pub(crate) fn recall(&mut self, id: Id) -> (CallbackToken, Vec<RecalledNode>) {
        match self.callback(id).expect("no callback") {
            (token, Callback::Recall { session, nodes }) => {
                assert_eq!(session, self.clients[&id].session);
                (token, nodes)
            }
            (_, fence) => panic!("{fence:?}"),
        }
    }

    pub(crate) fn answer(&mut self, callback: CallbackToken, open: &[Handle]) {
        if let Some((id, nodes)) = self.taken.remove(&callback) {
            self.copies.give_back(id, &nodes);
        }
        let message = encode(&CallbackResponse::Recalled { open: open.to_vec() });
        self.server.handle_callback_response(self.now, callback, Some(message));
        self.take_effects();
    }

    pub(crate) fn fail_callback(&mut self, callback: CallbackToken) {
        self.server.handle_callback_response(self.now, callback, None);
        self.take_effects();
    }

    pub(crate) fn wanted(nodes: &[(Handle, LeaseKind)]) -> SessionRequest {
        let wanted = nodes.iter().map(|(node, kind)| WantedLease { node: *node, kind: *kind });
        SessionRequest::Lease { wanted: wanted.collect() }
    }

    /// Acquires leases that are free.
    pub(crate) fn lease(&mut self, id: Id, nodes: &[(Handle, LeaseKind)]) {
        match self.ask(id, Self::wanted(nodes)) {
            Response::Leased { leases: leased, .. } => {
                for ((node, kind), (has, attributes)) in nodes.iter().zip(leased) {
                    assert!(has >= *kind && attributes.is_some(), "{node:?}: {has:?}");
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns the handle of a new node.
    pub(crate) fn new_ino(&mut self, id: Id) -> Ino {
        let client = self.clients.get_mut(&id).unwrap();
        client.created += 1;
        Ino(client.range.0 + client.created - 1)
    }

    pub(crate) fn create(parent: Handle, child: &str, ino: Ino, node: NewNode) -> Record {
        Record::Create {
            parent: Some((parent, name(child))),
            ino,
            node,
            mode: 0o644,
            uid: 1_000,
            gid: 1_000,
            time: Time::default(),
        }
    }

    /// The next batch of a client.
    pub(crate) fn batch(&mut self, id: Id, records: &[Record]) -> SessionRequest {
        let client = self.clients.get_mut(&id).unwrap();
        client.batches += 1;
        SessionRequest::Batch(Batch {
            number: client.batches,
            records: records.to_vec(),
            returns: vec![],
        })
    }

    /// Applies a batch that succeeds.
    pub(crate) fn apply(&mut self, id: Id, records: &[Record], payload: &[u8]) -> BatchDone {
        let batch = self.batch(id, records);
        match self.ask_with(id, batch, payload).response {
            Response::BatchDone(done) => {
                assert_eq!((done.failed, done.applied), (None, self.clients[&id].batches));
                done
            }
            other => panic!("{other:?}"),
        }
    }

    /// Creates a file; the client has `parent` exclusively.
    pub(crate) fn create_file(&mut self, id: Id, parent: Handle, child: &str) -> Handle {
        let ino = self.new_ino(id);
        self.apply(id, &[Self::create(parent, child, ino, NewNode::File)], b"");
        self.find(id, parent, child, LeaseKind::None).handle
    }

    pub(crate) fn look_up(start: Handle, path: &[&str], lease: LeaseKind) -> SessionRequest {
        let path = path.iter().map(|step| name(step)).collect();
        SessionRequest::LookUp(LookUp { start, path, lease, inline: 100 })
    }

    /// Finds a node that is free.
    pub(crate) fn find(
        &mut self,
        id: Id,
        parent: Handle,
        child: &str,
        lease: LeaseKind,
    ) -> FoundNode {
        match self.ask(id, Self::look_up(parent, &[child], lease)) {
            Response::Found { mut steps, .. } => match steps.pop() {
                Some(PathStep::Found(entry)) => entry,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn release_all(&mut self, id: Id, nodes: &[Handle]) {
        let leases = nodes.iter().map(|node| (*node, LeaseKind::None)).collect();
        assert_eq!(self.ask(id, SessionRequest::Release { leases }), Response::Done);
    }
}
