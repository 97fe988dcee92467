//! A server and clients that exchange messages at once.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use apus_fs_core::client::{
    Caller, Client, ClientCall, ClientEffect, ClientSettings, Clock, Invalidation, Lost,
    LostChanges, OpToken, Operation, Place, Reply, ServerCallback,
};
use apus_fs_core::server::{CallToken, CallbackToken, Server, ServerEffect, ServerSettings};
use apus_fs_core::store::ClientId;
use apus_fs_core::wire::{Errno, Ino, Name, NewNode, Response, Time, frame};
use apus_fs_store::memory::MemoryStore;
use bytes::Bytes;

/// A message in flight.
enum Message {
    Request { client: usize, call: ClientCall, bytes: Bytes },
    Response { client: usize, call: ClientCall, bytes: Bytes },
    Callback { client: usize, callback: CallbackToken, bytes: Bytes },
    Answer { callback: CallbackToken, bytes: Bytes },
}

/// A call without a response.
#[derive(Clone, Copy)]
enum LostCall {
    Request(usize, ClientCall),
    Callback(CallbackToken),
}

/// Selects the responses that are held back.
type IsHeld = fn(&Response) -> bool;

pub(crate) struct World {
    server: Option<Server<MemoryStore>>,
    pub(crate) clients: Vec<Client>,
    now: Duration,
    under_way: VecDeque<Message>,
    calls: BTreeMap<u64, (usize, ClientCall)>,
    callbacks: BTreeMap<u64, CallbackToken>,
    last_call: u64,
    last_callback: u64,
    last_op: u64,
    replies: BTreeMap<(usize, OpToken), Result<Reply, Errno>>,
    /// Requests that the server received from each client.
    pub(crate) requests: Vec<u64>,
    pub(crate) warnings: Vec<String>,
    pub(crate) lost_changes: Vec<LostChanges>,
    cut_off: Vec<bool>,
    /// Calls and callbacks that were lost, and when their senders notice.
    lost: Vec<(Duration, LostCall)>,
    /// Responses to a client that are held back now, and earlier ones.
    held: Option<(usize, IsHeld)>,
    held_back: Vec<Message>,
    /// Items that the clients' kernels were asked to drop.
    pub(crate) invalidated: Vec<(usize, Invalidation)>,
}

fn peer(client: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1_000 + client as u16))
}

impl World {
    pub(crate) fn new(clients: usize) -> Self {
        let settings = ServerSettings { grace: false, ..ServerSettings::default() };
        let server = Server::new(MemoryStore::new([9; 16]), settings, Duration::ZERO).unwrap();
        let mut world = Self {
            server: Some(server),
            clients: Vec::new(),
            now: Duration::from_secs(1),
            under_way: VecDeque::new(),
            calls: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            last_call: 0,
            last_callback: 0,
            last_op: 0,
            replies: BTreeMap::new(),
            requests: vec![0; clients],
            warnings: Vec::new(),
            lost_changes: Vec::new(),
            cut_off: vec![false; clients],
            lost: Vec::new(),
            held: None,
            held_back: Vec::new(),
            invalidated: Vec::new(),
        };
        for client in 0..clients {
            let settings = ClientSettings {
                id: ClientId([client as u8 + 1; 16]),
                name: Bytes::from(format!("client {client}")),
                export: Bytes::new(),
                read_only: false,
                lost: Lost::Wait,
                kernel_drops_names: true,
            };
            let clock = world.clock();
            world.clients.push(Client::new(settings, &clock));
        }
        world.settle();
        world
    }

    fn clock(&self) -> Clock {
        let wall = Time {
            seconds: 1_700_000_000 + self.now.as_secs() as i64,
            nanoseconds: self.now.subsec_nanos(),
        };
        Clock { now: self.now, wall }
    }

    pub(crate) fn server(&mut self) -> &mut Server<MemoryStore> {
        self.server.as_mut().expect("the server runs")
    }

    /// The store, to plant a failure of the next record or to read its state.
    pub(crate) fn change_store(&mut self, change: impl FnOnce(&mut MemoryStore)) {
        self.replace_server(ServerSettings::default(), change);
    }

    /// The server starts again, and refuses changes.
    pub(crate) fn restart_read_only(&mut self) {
        self.replace_server(
            ServerSettings { read_only: true, ..ServerSettings::default() },
            |_| {},
        );
    }

    fn replace_server(&mut self, settings: ServerSettings, change: impl FnOnce(&mut MemoryStore)) {
        let mut store = self.server.take().unwrap().into_store();
        change(&mut store);
        self.server = Some(Server::new(store, settings, self.now).unwrap());
        // Messages in flight are lost.
        self.under_way.clear();
        self.callbacks.clear();
        let clock = self.clock();
        for (_, (client, call)) in std::mem::take(&mut self.calls) {
            self.clients[client].handle_response(&clock, call, None);
        }
        self.settle();
    }

    /// The server's machine crashes and restarts: `kept` of the uncommitted batches survive.
    pub(crate) fn restart_server(&mut self, kept: usize) {
        self.change_store(|store| store.crash(kept));
    }

    /// Delivers all messages in flight, and all that follow from them.
    pub(crate) fn settle(&mut self) {
        loop {
            self.collect();
            let Some(message) = self.under_way.pop_front() else { break };
            self.deliver(message);
        }
    }

    fn collect(&mut self) {
        let (now, clock) = (self.now, self.clock());
        self.server().poll(now).unwrap();
        while let Some(effect) = self.server().take_effect() {
            match effect {
                ServerEffect::Respond { call, header, payload } => {
                    let (client, call) =
                        self.calls.remove(&call.0).expect("a call is answered once");
                    let bytes = [vec![header], payload].concat().concat().into();
                    self.under_way.push_back(Message::Response { client, call, bytes });
                }
                ServerEffect::Call { callback, peer, message } => {
                    let client = usize::from(peer.port()) - 1_000;
                    self.under_way.push_back(Message::Callback {
                        client,
                        callback,
                        bytes: message,
                    });
                }
            }
        }
        for client in 0..self.clients.len() {
            while let Some(effect) = self.clients[client].take_effect() {
                match effect {
                    ClientEffect::Reply { operation, result } => {
                        let before = self.replies.insert((client, operation), result);
                        assert!(before.is_none(), "FSCLIENT-1");
                    }
                    ClientEffect::Call { call, header, payload, .. } => {
                        let bytes = [vec![header], payload].concat().concat().into();
                        self.under_way.push_back(Message::Request { client, call, bytes });
                    }
                    ClientEffect::Answer { callback, message } => {
                        let callback = self.callbacks.remove(&callback.0).unwrap();
                        self.under_way.push_back(Message::Answer { callback, bytes: message });
                    }
                    ClientEffect::Invalidate { notification, items } => {
                        self.invalidated.extend(items.into_iter().map(|item| (client, item)));
                        self.clients[client].notified(&clock, notification);
                    }
                    ClientEffect::Warn(text) => self.warnings.push(text),
                    ClientEffect::Lost(changes) => self.lost_changes.push(changes),
                }
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        let (now, clock) = (self.now, self.clock());
        let noticed = now + Duration::from_millis(100);
        match message {
            Message::Request { client, call, .. } | Message::Response { client, call, .. }
                if self.cut_off[client] =>
            {
                self.lost.push((noticed, LostCall::Request(client, call)));
            }
            Message::Callback { client, callback, .. } if self.cut_off[client] => {
                self.lost.push((noticed, LostCall::Callback(callback)));
            }
            Message::Request { client, call, bytes } => {
                self.requests[client] += 1;
                self.last_call += 1;
                self.calls.insert(self.last_call, (client, call));
                let call = CallToken(self.last_call);
                self.server().handle_request(now, peer(client), call, bytes);
            }
            Message::Response { client, ref bytes, .. } if self.is_held(client, bytes) => {
                self.held_back.push(message);
            }
            Message::Response { client, call, bytes } => {
                self.clients[client].handle_response(&clock, call, Some(bytes));
            }
            Message::Callback { client, callback, bytes } => {
                self.last_callback += 1;
                self.callbacks.insert(self.last_callback, callback);
                let callback = ServerCallback(self.last_callback);
                self.clients[client].handle_callback(&clock, callback, bytes);
            }
            Message::Answer { callback, bytes } => {
                self.server().handle_callback_response(now, callback, Some(bytes));
            }
        }
    }

    fn is_held(&self, client: usize, bytes: &Bytes) -> bool {
        self.held.is_some_and(|(held, is_held)| {
            let decoded = frame::decode::<Response>(bytes.clone());
            client == held && decoded.is_ok_and(|decoded| is_held(&decoded.message))
        })
    }

    /// Holds back responses to a client until [`release`](Self::release).
    pub(crate) fn hold_back(&mut self, client: usize, responses: IsHeld) {
        self.held = Some((client, responses));
    }

    /// Delivers the responses that were held back.
    pub(crate) fn release(&mut self) {
        self.held = None;
        self.under_way.extend(std::mem::take(&mut self.held_back));
        self.settle();
    }

    /// Loses the responses that were held back.
    pub(crate) fn lose_held(&mut self) {
        self.held = None;
        let clock = self.clock();
        for message in std::mem::take(&mut self.held_back) {
            if let Message::Response { client, call, .. } = message {
                self.clients[client].handle_response(&clock, call, None);
            }
        }
        self.settle();
    }

    /// Advances time by at least `time`.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.advance();
        }
    }

    /// Advances time to the next deadline of any participant.
    pub(crate) fn advance(&mut self) {
        let deadlines = self.clients.iter().filter_map(Client::next_deadline);
        let deadlines = deadlines.chain(self.lost.iter().map(|(at, _)| *at));
        let next = deadlines.chain(self.server.as_ref().and_then(Server::next_deadline)).min();
        let next = next.expect("something is waited for");
        self.now = self.now.max(next) + Duration::from_micros(1);
        let clock = self.clock();
        let (noticed, lost): (Vec<_>, Vec<_>) =
            self.lost.iter().partition(|(at, _)| *at <= self.now);
        self.lost = lost;
        for (_, call) in noticed {
            match call {
                LostCall::Request(client, call) => {
                    self.clients[client].handle_response(&clock, call, None);
                }
                LostCall::Callback(callback) => {
                    let now = self.now;
                    self.server().handle_callback_response(now, callback, None);
                }
            }
        }
        self.clients.iter_mut().for_each(|client| client.poll(&clock));
        self.settle();
    }

    /// Starts an operation.
    pub(crate) fn begin(&mut self, client: usize, operation: Operation) -> OpToken {
        self.last_op += 1;
        let token = OpToken(self.last_op);
        let clock = self.clock();
        self.clients[client].submit(&clock, token, Caller { uid: 0, gid: 0 }, operation);
        self.settle();
        token
    }

    /// Starts an operation and delivers no message.
    pub(crate) fn begin_unsettled(&mut self, client: usize, operation: Operation) -> OpToken {
        self.last_op += 1;
        let (token, clock) = (OpToken(self.last_op), self.clock());
        self.clients[client].submit(&clock, token, Caller { uid: 0, gid: 0 }, operation);
        token
    }

    /// Delivers requests in flight, and no message that follows from them.
    pub(crate) fn deliver_requests(&mut self) {
        self.collect();
        for _ in 0..self.under_way.len() {
            let message = self.under_way.pop_front().unwrap();
            self.deliver(message);
        }
        let now = self.now;
        self.server().poll(now).unwrap();
    }

    /// Waits for an operation.
    #[track_caller]
    pub(crate) fn wait(&mut self, client: usize, token: OpToken) -> Result<Reply, Errno> {
        for _ in 0..1_000 {
            if let Some(result) = self.ended(client, token) {
                return result;
            }
            self.advance();
        }
        panic!("the operation does not end");
    }

    pub(crate) fn interrupt(&mut self, client: usize, token: OpToken) {
        let clock = self.clock();
        self.clients[client].interrupt(&clock, token);
        self.settle();
    }

    /// Cuts a client off, or connects it again. Calls fail after 100 ms while it is cut off.
    pub(crate) fn cut_off(&mut self, client: usize, is_cut_off: bool) {
        self.cut_off[client] = is_cut_off;
        self.settle();
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Number of callbacks that clients received.
    pub(crate) fn callbacks_made(&self) -> u64 {
        self.last_callback
    }

    /// Returns the result of an operation, if it has ended.
    pub(crate) fn ended(&mut self, client: usize, token: OpToken) -> Option<Result<Reply, Errno>> {
        self.replies.remove(&(client, token))
    }

    /// Does an operation and returns its result.
    #[track_caller]
    pub(crate) fn run(&mut self, client: usize, operation: Operation) -> Result<Reply, Errno> {
        let shown = format!("{operation:?}");
        let token = self.begin(client, operation);
        for _ in 0..1_000 {
            if let Some(result) = self.ended(client, token) {
                return result;
            }
            self.advance();
        }
        panic!("the operation does not end: {shown}");
    }

    /// Waits until all changes are at the server.
    pub(crate) fn flush(&mut self, client: usize) {
        while !self.clients[client].is_clean() {
            self.advance();
        }
    }

    /// Ends a client's session.
    pub(crate) fn leave(&mut self, client: usize) {
        let clock = self.clock();
        self.clients[client].close(&clock);
        self.settle();
    }

    #[track_caller]
    pub(crate) fn look_up(&mut self, client: usize, directory: Ino, name: &str) -> Option<Ino> {
        match self.run(client, Operation::LookUp(place(directory, name))).unwrap() {
            Reply::Entry(entry) => Some(entry.node),
            Reply::Absent(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Creates and opens a file.
    #[track_caller]
    pub(crate) fn create(&mut self, client: usize, directory: Ino, name: &str) -> Ino {
        let place = place(directory, name);
        let create = Operation::Create { place, node: NewNode::File, mode: 0o644, open: true };
        match self.run(client, create).unwrap() {
            Reply::Created(entry) => entry.node,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn mkdir(&mut self, client: usize, directory: Ino, name: &str) -> Ino {
        let place = place(directory, name);
        let create =
            Operation::Create { place, node: NewNode::Directory, mode: 0o755, open: false };
        match self.run(client, create).unwrap() {
            Reply::Entry(entry) => entry.node,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn write(&mut self, client: usize, node: Ino, offset: u64, data: &[u8]) {
        let operation = write(node, offset, data, false);
        assert_eq!(self.run(client, operation), Ok(Reply::Written(data.len() as u32)));
    }

    #[track_caller]
    pub(crate) fn append(&mut self, client: usize, node: Ino, data: &[u8]) {
        let operation = write(node, 0, data, true);
        assert_eq!(self.run(client, operation), Ok(Reply::Written(data.len() as u32)));
    }

    #[track_caller]
    pub(crate) fn read(&mut self, client: usize, node: Ino) -> Vec<u8> {
        match self.run(client, Operation::Read { node, offset: 0, size: 1 << 20 }).unwrap() {
            Reply::Data(pieces) => pieces.concat(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn sync(&mut self, client: usize, node: Ino) {
        assert_eq!(self.run(client, Operation::Sync { node }), Ok(Reply::Done));
    }

    #[track_caller]
    pub(crate) fn close(&mut self, client: usize, node: Ino) {
        let release = Operation::Release { node, writable: true, flock_owner: None };
        assert_eq!(self.run(client, release), Ok(Reply::Done));
    }

    /// Names of a directory, without the dots.
    #[track_caller]
    pub(crate) fn list(&mut self, client: usize, node: Ino) -> Vec<String> {
        let Ok(Reply::Opened { handle, .. }) = self.run(client, Operation::OpenDirectory { node })
        else {
            panic!("the directory cannot be opened")
        };
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let (most, with_attributes) = (100, true);
            let read = Operation::ReadDirectory { node, handle, offset, most, with_attributes };
            let Ok(Reply::Entries(entries)) = self.run(client, read) else { panic!("no entries") };
            let Some(last) = entries.last() else { break };
            offset = last.next;
            names.extend(entries.iter().map(|e| String::from_utf8_lossy(&e.name).into_owned()));
        }
        names.retain(|name| name != "." && name != "..");
        names
    }
}

pub(crate) fn place(directory: Ino, name: &str) -> Place {
    Place { directory, name: Name::new(name.as_bytes().to_vec()).unwrap() }
}

pub(crate) fn write(node: Ino, offset: u64, data: &[u8], append: bool) -> Operation {
    Operation::Write {
        node,
        offset,
        data: Bytes::copy_from_slice(data),
        append,
        from_cache: false,
        kill_privileges: false,
    }
}
