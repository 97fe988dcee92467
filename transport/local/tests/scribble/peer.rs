//! A hostile peer, which does not use this crate.
//!
//! It has the shared file and writes into it with write(2), which changes the same memory as a
//! mapping does. The layout is repeated here in numbers: it must not change without another version
//! of the handshake.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use apus_local::{Connecting, Listener, LocalConfig, Pair, PeerName, RingSizes};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Bytes of each of the four rings here.
pub(crate) const RING: u32 = 4096;
/// Bytes of the file.
pub(crate) const LEN: usize = 4096 + 4 * RING as usize;

/// The victim's settings.
pub(crate) fn config() -> LocalConfig {
    let mut config = LocalConfig::default();
    config.sizes = RingSizes { short: RING, bulk: RING };
    config.limits.max_message = 1 << 20;
    config.limits.max_receive_bytes = 4 << 20;
    config
}

/// Returns the socket address of a name.
pub(crate) fn address(name: &PeerName) -> SocketAddr {
    SocketAddr::from_abstract_name(&name.to_string().as_bytes()[1..]).unwrap()
}

/// Version of the handshake.
pub(crate) const VERSION: u32 = 2;

/// Returns the bytes of a hello.
pub(crate) fn hello(version: u32, short: u32, bulk: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(b"apuslocl");
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].copy_from_slice(&short.to_le_bytes());
    bytes[16..20].copy_from_slice(&bulk.to_le_bytes());
    bytes
}

/// Creates a file as a client does.
pub(crate) fn memory(seals: SealFlags, len: usize) -> OwnedFd {
    let file = rustix::fs::memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, len as u64).unwrap();
    rustix::fs::fcntl_add_seals(&file, seals).unwrap();
    file
}

/// The required seals.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Sends `bytes` and hands `files` over.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8], files: &[OwnedFd]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    }
    let flags = SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).unwrap();
}

/// A peer that writes anything.
pub(crate) struct Hostile {
    pub(crate) file: File,
    pub(crate) socket: UnixStream,
    /// Offsets of its own rings, short and bulk, and positions of their next records.
    rings: [usize; 2],
    positions: [u64; 2],
}

impl Hostile {
    /// Returns a hostile client, and the server's side of the pair.
    pub(crate) fn client(name: &PeerName) -> (Self, Pair) {
        let listener = Listener::bind(name, &config()).unwrap();
        let hostile = Self::connect(name);
        let server = listener.accept().unwrap().unwrap().advance().unwrap().unwrap();
        (hostile, server)
    }

    /// Returns a hostile client that has connected and sent its hello.
    pub(crate) fn connect(name: &PeerName) -> Self {
        let socket = UnixStream::connect_addr(&address(name)).unwrap();
        let file = memory(SEALS, LEN);
        send(&socket, &hello(VERSION, RING, RING), &[file.try_clone().unwrap()]);
        Self { file: file.into(), socket, rings: [4096, 8192], positions: [0, 0] }
    }

    /// Returns a hostile server, and the client's side of the pair.
    pub(crate) fn server(name: &PeerName) -> (Self, Pair) {
        let listener = UnixListener::bind_addr(&address(name)).unwrap();
        let mut client = Connecting::start(name, &config()).unwrap();
        let socket = listener.accept().unwrap().0;
        let mut bytes = [0; 32];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut iov = [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(&socket, &mut iov, &mut control, RecvFlags::empty()).unwrap();
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        send(&socket, &hello(VERSION, 0, 0), &[]);
        let client = client.advance().unwrap().unwrap();
        let file = file.unwrap().into();
        (Self { file, socket, rings: [12288, 16384], positions: [0, 0] }, client)
    }

    /// Writes `bytes` at any offset.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let at = at % LEN;
        let bytes = &bytes[..bytes.len().min(LEN - at)];
        self.file.write_all_at(bytes, at as u64).unwrap();
    }

    /// Writes the form of a record where the victim expects the next one.
    pub(crate) fn record(&mut self, lane: usize, kind: u8, id: u64, len: u32, third: u64) {
        let begin = self.rings[lane] + (self.positions[lane] % u64::from(RING)) as usize;
        let span = (u64::from(len) + 24).next_multiple_of(64);
        self.positions[lane] = self.positions[lane].wrapping_add(span);
        let next = self.rings[lane] + (self.positions[lane] % u64::from(RING)) as usize;
        self.write(next, &[0; 8]);
        self.write(begin + 8, &id.to_le_bytes());
        self.write(begin + 16, &third.to_le_bytes());
        let first = u64::from(len) | u64::from(kind) << 32 | 0xA9_05_1C << 40;
        self.write(begin, &first.to_le_bytes());
    }

    /// Publishes a read position in the victim's ring.
    pub(crate) fn head(&self, lane: usize, position: u64) {
        // The heads of the victim's rings belong to the other direction.
        let first = if self.rings[0] == 4096 { 256 + 2 * 128 } else { 256 };
        self.write(first + 128 * lane, &position.to_le_bytes());
    }
}
