//! A client of another user of this host, which sends whatever it likes, at a server of root.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use apus::{CallOptions, Endpoint};
use apus_fs_core::wire::{
    Batch, BatchDone, Errno, Failure, Handle, Hello, Ino, LeaseKind, LookUp, Name, NewNode,
    NodeKind, NodeRange, PathStep, Record, Request, Response, SessionRequest, SetAttributes, Time,
    WantedLease, Welcome, WireVersion, frame,
};
use bytes::Bytes;

use crate::harness::{World, run_as};

const OVERFLOW_ID: u32 = 65_534;

/// FSRUN-8: over loopback another user is that user, with all defaults.
#[test]
fn another_user_has_no_rights_of_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be another user");
        return;
    }
    let world = World::new();
    let at = |name: &str| world.directory().join(name);
    fs::set_permissions(world.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("secret"), "of root").unwrap();
    fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(at("closed")).unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(at("closed/inside"), "readable if reached").unwrap();
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o1777)).unwrap();
    let server = world.serve(None);
    match run_as(OVERFLOW_ID, &["hostile", &server.ready]) {
        Ok(status) => {
            assert!(status.success(), "the client has found more rights than its user has");
        }
        Err(error) => {
            eprintln!("SKIPPED: another user cannot run this program: {error}");
            return;
        }
    }
    server.stop();
    assert_eq!(fs::read(at("secret")).unwrap(), b"of root");
    assert_eq!(fs::metadata(at("secret")).unwrap().mode() & 0o7777, 0o600);
    let made = fs::metadata(at("open/program")).unwrap();
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (OVERFLOW_ID, OVERFLOW_ID, 0o777));
    for entry in fs::read_dir(at("open")).unwrap() {
        let kind = entry.unwrap().file_type().unwrap();
        assert!(!kind.is_block_device() && !kind.is_char_device());
    }
    assert!(!at("planted").exists());
}

/// The client's side of an attack.
pub(crate) fn attack(server: SocketAddr) {
    let mut client = Client::new(server);
    let root = client.root;
    // A file of root that others may not read: neither inline, nor by a read.
    let secret = client.find(&["secret"]).expect("its name may be seen");
    assert_eq!(secret.1, None);
    let ranges = vec![NodeRange { file: secret.0, offset: 0, length: 100 }];
    assert_eq!(client.ask(SessionRequest::Read { ranges }), refused(Errno::ACCES));
    assert_eq!(client.find(&["closed", "inside"]), Err(Errno::ACCES));
    // A directory of root is not leased for changes.
    assert_eq!(client.lease(root), refused(Errno::ACCES));
    let create = |parent, name: &str, ino, node| Record::Create {
        parent: Some((parent, Name::new(name.as_bytes().to_vec()).unwrap())),
        ino,
        node,
        mode: 0o6777,
        uid: 0,
        gid: 0,
        time: Time::default(),
    };
    let ino = client.ino();
    assert!(client.batch(vec![create(root, "planted", ino, NewNode::File)]).is_err());
    // A program of root in a folder for all becomes one of the user, without rights.
    let open = client.find(&["open"]).unwrap().0;
    assert!(matches!(client.lease(open), Response::Leased { .. }));
    let program = client.ino();
    let done = client.batch(vec![create(open, "program", program, NewNode::File)]).unwrap();
    let (handle, new) = *done.changed.iter().find(|(handle, _)| handle.ino == program).unwrap();
    assert_eq!((new.uid, new.gid, new.mode), (OVERFLOW_ID, OVERFLOW_ID, 0o777));
    let set = SetAttributes { mode: Some(0o6777), uid: Some(0), ..SetAttributes::default() };
    let done = client.batch(vec![Record::SetAttributes { node: handle, set }]).unwrap();
    assert_eq!((done.changed[0].1.uid, done.changed[0].1.mode), (OVERFLOW_ID, 0o777));
    for name in ["security.capability", "trusted.overlay.opaque"] {
        let set = Record::SetXattr { node: handle, name: name.into(), value: "y".into() };
        assert_eq!(client.batch(vec![set]), Err(Errno::OPNOTSUPP), "{name}");
    }
    for kind in [NodeKind::BlockDevice, NodeKind::CharacterDevice] {
        let ino = client.ino();
        let device = NewNode::Special { kind, device: 0x801 };
        let made = client.batch(vec![create(open, "device", ino, device)]);
        assert_eq!(made.map(|_| ()), Err(Errno::PERM), "{kind:?}");
    }
    let set = SetAttributes { mode: Some(0o666), ..SetAttributes::default() };
    let taken = client.batch(vec![Record::SetAttributes { node: secret.0, set }]);
    assert!(taken.is_err());
    client.ask(SessionRequest::Goodbye);
}

fn refused(errno: Errno) -> Response {
    Response::Failed(Failure::Errno(errno))
}

/// A client without a kernel.
struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
    session: u64,
    root: Handle,
    next: u64,
    batches: u64,
    greetings: u64,
}

impl Client {
    fn new(server: SocketAddr) -> Self {
        let mut client = Self {
            endpoint: Endpoint::client().unwrap(),
            server,
            session: 0,
            root: Handle::created(Ino::ROOT),
            next: 0,
            batches: 0,
            greetings: 0,
        };
        let welcome = client.greet(None);
        (client.session, client.root) = (welcome.session, welcome.root.handle);
        client
    }

    fn greet(&mut self, session: Option<u64>) -> Welcome {
        self.greetings += 1;
        let hello = Request::Hello(Hello {
            oldest: WireVersion::OLDEST,
            newest: WireVersion::CURRENT,
            client: [7; 16],
            name: Bytes::from_static(b"hostile"),
            session,
            ranges: Vec::new(),
            read_only: false,
            export: Bytes::new(),
            greeting: self.greetings,
        });
        let Response::Welcome(welcome) = self.call(&hello) else { panic!("no welcome") };
        (self.next, self.batches) = (welcome.first_ino, welcome.applied);
        welcome
    }

    fn call(&self, request: &Request) -> Response {
        let options = CallOptions::new().timeout(Duration::from_secs(60)).idempotent(true);
        let response = self.endpoint.call_with(self.server, frame::encode(request), options);
        frame::decode::<Response>(response.unwrap()).unwrap().message
    }

    fn ask(&self, request: SessionRequest) -> Response {
        self.call(&Request::Of { session: self.session, request })
    }

    fn ino(&mut self) -> Ino {
        self.next += 1;
        Ino(self.next - 1)
    }

    fn find(&self, path: &[&str]) -> Result<(Handle, Option<Bytes>), Errno> {
        let path: Vec<Name> =
            path.iter().map(|name| Name::new(name.as_bytes().to_vec()).unwrap()).collect();
        let look_up = LookUp { start: self.root, path, lease: LeaseKind::None, inline: 100 };
        let Response::Found { mut steps, .. } = self.ask(SessionRequest::LookUp(look_up)) else {
            panic!("not found");
        };
        match steps.pop() {
            Some(PathStep::Found(entry)) => Ok((entry.handle, entry.contents)),
            Some(PathStep::Failed(errno)) => Err(errno),
            Some(PathStep::Absent) | None => panic!("absent"),
        }
    }

    fn lease(&self, node: Handle) -> Response {
        let wanted = vec![WantedLease { node, kind: LeaseKind::Exclusive }];
        self.ask(SessionRequest::Lease { wanted })
    }

    /// Sends a batch. After a refusal, it greets again.
    fn batch(&mut self, records: Vec<Record>) -> Result<BatchDone, Errno> {
        let number = self.batches + 1;
        let batch = Batch { number, records, returns: Vec::new() };
        match self.ask(SessionRequest::Batch(batch)) {
            Response::BatchDone(done) if done.failed.is_none() => {
                self.batches = number;
                Ok(done)
            }
            Response::Failed(Failure::Errno(errno)) => {
                self.greet(Some(self.session));
                Err(errno)
            }
            other => panic!("{other:?}"),
        }
    }
}
