//! Which system calls are made, and what makes them sound?
//!
//! The one file with `unsafe`. It offers safe calls: lengths come from the slices that the caller
//! lends, and the kernel writes nowhere else. Every call is non-blocking because the socket is.
//!
//! The calls go through syscall(2) and not through the C library's functions of the same names. These
//! are cancellation points (pthreads(7)), which costs two locked instructions per call in a process
//! with threads: 4 % of a short round trip (docs/perf-log.md 2026-11-20). Nobody cancels threads here.

use std::io::IoSlice;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use arrayvec::ArrayVec;
use rustix::io::Errno;

use crate::address::{RAW_LEN, RawAddress};
use crate::cmsg::CONTROL_SPACE;

/// What recvmmsg(2) takes for "do not wait longer than this": nothing, because we never wait.
const NO_TIMEOUT: *mut libc::timespec = ptr::null_mut();

/// Datagrams that one [`receive`] takes at most.
pub(crate) const RECEIVE_BATCH: usize = 16;

/// A datagram to send, together with what it borrows.
#[repr(transparent)]
pub(crate) struct Outgoing<'a> {
    raw: libc::mmsghdr,
    _borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Outgoing<'a> {
    /// `pieces`, one behind the other, to `to`, with control messages.
    #[inline]
    pub(crate) fn new(to: &'a RawAddress, pieces: &'a [IoSlice<'a>], control: &'a [u8]) -> Self {
        let mut raw = empty_header();
        let header = &mut raw.msg_hdr;
        // The kernel only reads through these pointers, whatever their type says.
        header.msg_name = to.as_bytes().as_ptr().cast_mut().cast();
        header.msg_namelen = to.as_bytes().len() as libc::socklen_t;
        // IoSlice has the layout of struct iovec: promised by std.
        header.msg_iov = pieces.as_ptr().cast_mut().cast();
        header.msg_iovlen = pieces.len() as _;
        if !control.is_empty() {
            header.msg_control = control.as_ptr().cast_mut().cast();
            header.msg_controllen = control.len() as _;
        }
        Self { raw, _borrowed: PhantomData }
    }

    /// Whether an address and one piece are all there is.
    #[inline]
    fn is_plain(&self) -> bool {
        self.raw.msg_hdr.msg_controllen == 0 && self.raw.msg_hdr.msg_iovlen == 1
    }

    /// Sends a plain message with sendto(2): 50 ns less than sendmsg(2), docs/perf-log.md
    /// 2026-11-20.
    #[inline]
    fn send_plain(&self, fd: libc::c_int) -> Result<usize, Errno> {
        let header = &self.raw.msg_hdr;
        // SAFETY: `msg_iov` comes from a slice of `msg_iovlen` pieces, and there is one.
        let piece = unsafe { *header.msg_iov };
        let (name, name_len) = (header.msg_name, header.msg_namelen);
        // SAFETY: pointers and lengths come from slices that the message borrows; sendto only reads.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, fd, piece.iov_base, piece.iov_len, 0, name, name_len)
        };
        check(sent).map(|_| 1)
    }
}

/// Hands `messages` to the kernel; returns how many it took, at least one.
///
/// # Errors
///
/// The first message was not taken. An error of a later one is not seen: sendmmsg(2) forgets it.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, messages: &mut [Outgoing<'_>]) -> Result<usize, Errno> {
    let fd = fd.as_raw_fd();
    match messages {
        [message] if message.is_plain() => message.send_plain(fd),
        [message] => {
            // SAFETY: the header's pointers and lengths come from slices that the message borrows,
            // and sendmsg only reads.
            let sent =
                unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message.raw.msg_hdr, 0) };
            check(sent).map(|_| 1)
        }
        _ => {
            let count = messages.len() as libc::c_uint;
            // SAFETY: `Outgoing` is transparent over `mmsghdr`, and there are `count` of them; the
            // headers' pointers and lengths come from slices that the messages borrow. The kernel
            // writes nothing but `msg_len`, which lies in the exclusive slice.
            let sent =
                unsafe { libc::syscall(libc::SYS_sendmmsg, fd, messages.as_mut_ptr(), count, 0) };
            check(sent)
        }
    }
}

/// A place for one arriving datagram.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The datagram, all packets of a merged one.
    data: Box<[u8]>,
    /// Who sent it, in the kernel's layout. For the error queue: who it was sent to.
    name: [u8; RAW_LEN],
    control: [u8; CONTROL_SPACE],
    /// Written by the kernel: bytes used of `name`, `data` and `control`, and flags.
    name_len: usize,
    len: usize,
    control_len: usize,
    flags: libc::c_int,
}

impl Inbox {
    /// Room for a datagram of `len` bytes.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            data: vec![0; len].into(),
            name: [0; RAW_LEN],
            control: [0; CONTROL_SPACE],
            name_len: 0,
            len: 0,
            control_len: 0,
            flags: 0,
        }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name[..self.name_len]
    }

    #[inline]
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.data[..self.len]
    }

    pub(crate) fn control(&self) -> &[u8] {
        &self.control[..self.control_len]
    }

    /// Whether the datagram was longer than `data`.
    pub(crate) fn is_cut(&self) -> bool {
        self.flags & libc::MSG_TRUNC != 0
    }

    /// Whether control messages are missing.
    pub(crate) fn is_control_cut(&self) -> bool {
        self.flags & libc::MSG_CTRUNC != 0
    }

    /// A header that lets the kernel fill this place by way of `iov`.
    #[inline]
    fn header(&mut self, iov: *mut libc::iovec) -> libc::mmsghdr {
        let mut raw = empty_header();
        let header = &mut raw.msg_hdr;
        header.msg_name = self.name.as_mut_ptr().cast();
        header.msg_namelen = RAW_LEN as libc::socklen_t;
        header.msg_iov = iov;
        header.msg_iovlen = 1;
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_controllen = self.control.len() as _;
        raw
    }

    #[inline]
    fn iov(&mut self) -> libc::iovec {
        libc::iovec { iov_base: self.data.as_mut_ptr().cast(), iov_len: self.data.len() }
    }

    /// Notes what the kernel wrote. The lengths are clipped, so that nobody needs to trust them.
    #[inline]
    fn note(&mut self, header: &libc::msghdr, len: usize) {
        self.name_len = RAW_LEN.min(header.msg_namelen as usize);
        self.len = self.data.len().min(len);
        self.control_len = self.control.len().min(header.msg_controllen as _);
        self.flags = header.msg_flags;
    }
}

/// Fills `inboxes` from the front, at most [`RECEIVE_BATCH`]; returns how many, at least one.
///
/// # Errors
///
/// Nothing was received. EAGAIN: nothing is there.
#[inline]
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    inboxes: &mut [Inbox],
    flags: libc::c_int,
) -> Result<usize, Errno> {
    let raw_fd = fd.as_raw_fd();
    match inboxes {
        [inbox] => {
            let mut iov = inbox.iov();
            let mut header = inbox.header(&raw mut iov).msg_hdr;
            // SAFETY: the header's pointers and lengths describe `iov`, which lives until after the
            // call, and memory of `inbox`, which is borrowed exclusively.
            let len = unsafe { libc::syscall(libc::SYS_recvmsg, raw_fd, &raw mut header, flags) };
            let len = check(len)?;
            inbox.note(&header, len);
            Ok(1)
        }
        _ => receive_many(raw_fd, inboxes, flags),
    }
}

fn receive_many(
    raw_fd: libc::c_int,
    inboxes: &mut [Inbox],
    flags: libc::c_int,
) -> Result<usize, Errno> {
    // Filled in place: a `collect` would move them.
    let mut iovs = ArrayVec::<libc::iovec, RECEIVE_BATCH>::new();
    iovs.extend(inboxes.iter_mut().map(Inbox::iov).take(RECEIVE_BATCH));
    let mut headers = ArrayVec::<libc::mmsghdr, RECEIVE_BATCH>::new();
    headers.extend(inboxes.iter_mut().zip(&mut iovs).map(|(inbox, iov)| inbox.header(iov)));
    let (places, count) = (headers.as_mut_ptr(), headers.len());
    // SAFETY: there are `count` headers. Their pointers and lengths describe elements of `iovs`,
    // which is not touched until after the call, and memory of `inboxes`, which are borrowed
    // exclusively.
    let filled =
        unsafe { libc::syscall(libc::SYS_recvmmsg, raw_fd, places, count, flags, NO_TIMEOUT) };
    let filled = check(filled)?;
    for (inbox, header) in inboxes.iter_mut().zip(&headers).take(filled) {
        inbox.note(&header.msg_hdr, header.msg_len as usize);
    }
    Ok(filled)
}

/// Sets a socket option that is an int.
///
/// # Errors
///
/// What setsockopt(2) answers.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: `value` points to `len` bytes, which the kernel reads.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, len) };
    check(result.into()).map(|_| ())
}

/// Reads a socket option that is an int.
///
/// # Errors
///
/// What getsockopt(2) answers.
pub(crate) fn option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: `place` has room for `len` bytes, which the kernel writes at most.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, place, &raw mut len) };
    check(result.into()).map(|_| value)
}

/// A header without anything.
#[inline]
fn empty_header() -> libc::mmsghdr {
    let header = MaybeUninit::<libc::mmsghdr>::zeroed();
    // SAFETY: all fields are integers and pointers, for which zero is a value. (Some systems have
    // private padding, so it cannot be written as an expression.)
    unsafe { header.assume_init() }
}

/// A count, or the error that -1 stands for.
#[inline]
fn check(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last_error())
}

#[cold]
fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).expect("the last error is an error number")
}
