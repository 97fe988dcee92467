//! System calls, the only file with `unsafe`.
//!
//! This file offers safe calls: lengths come from slices borrowed from the caller, and the kernel
//! writes only there. Every call is non-blocking because the socket is.
//!
//! The calls use syscall(2) instead of the C library's functions. Those are cancellation points
//! (pthreads(7)), which costs two locked instructions per call in a process with threads: 4 % of a
//! short round trip (lab/log 2026-11-20). No thread is ever cancelled here.

use std::io::IoSlice;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use arrayvec::ArrayVec;
use rustix::io::Errno;

use crate::address::{RAW_LEN, RawAddress};
use crate::cmsg::CONTROL_SPACE;

/// Timeout of recvmmsg(2): none, because the calls never wait.
const NO_TIMEOUT: *mut libc::timespec = ptr::null_mut();

/// Maximum number of datagrams of one [`receive`].
pub(crate) const RECEIVE_BATCH: usize = 16;

/// A datagram to send, and the memory that it borrows.
#[repr(transparent)]
pub(crate) struct OutgoingDatagram<'a> {
    raw: libc::mmsghdr,
    _borrowed: PhantomData<&'a [u8]>,
}

impl<'a> OutgoingDatagram<'a> {
    /// Returns a datagram of the concatenated `pieces` to `to`, with control messages.
    #[inline]
    pub(crate) fn new(to: &'a RawAddress, pieces: &'a [IoSlice<'a>], control: &'a [u8]) -> Self {
        let mut message = Self::to_connected(pieces, control);
        let header = &mut message.raw.msg_hdr;
        // As below, the kernel only reads.
        header.msg_name = to.as_bytes().as_ptr().cast_mut().cast();
        header.msg_namelen = to.as_bytes().len() as libc::socklen_t;
        message
    }

    /// Returns a datagram of the concatenated `pieces` to the peer of a connected socket.
    #[inline]
    pub(crate) fn to_connected(pieces: &'a [IoSlice<'a>], control: &'a [u8]) -> Self {
        let mut raw = empty_header();
        let header = &mut raw.msg_hdr;
        // The kernel only reads through these pointers, although their type is mutable. IoSlice has
        // the layout of struct iovec, as std guarantees.
        header.msg_iov = pieces.as_ptr().cast_mut().cast();
        header.msg_iovlen = pieces.len() as _;
        if !control.is_empty() {
            header.msg_control = control.as_ptr().cast_mut().cast();
            header.msg_controllen = control.len() as _;
        }
        Self { raw, _borrowed: PhantomData }
    }

    /// Returns whether the datagram has one piece and no control messages.
    #[inline]
    fn is_plain(&self) -> bool {
        self.raw.msg_hdr.msg_controllen == 0 && self.raw.msg_hdr.msg_iovlen == 1
    }

    /// Sends a plain message with sendto(2), which takes 50 ns less than sendmsg(2)
    /// (lab/log, 2026-11-20).
    #[inline]
    fn send_plain(&self, fd: libc::c_int) -> Result<usize, Errno> {
        let header = &self.raw.msg_hdr;
        // SAFETY: `msg_iov` points to a slice of `msg_iovlen` pieces, and that length is 1.
        let piece = unsafe { *header.msg_iov };
        let (name, name_len) = (header.msg_name, header.msg_namelen);
        // SAFETY: Pointers and lengths come from slices that the message borrows, and sendto only
        // reads.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, fd, piece.iov_base, piece.iov_len, 0, name, name_len)
        };
        check(sent).map(|_| 1)
    }
}

/// Sends `messages`; returns how many the kernel accepted, at least one.
///
/// # Errors
///
/// The error of the first message. An error of a later message is lost: sendmmsg(2) forgets it.
#[inline]
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    messages: &mut [OutgoingDatagram<'_>],
) -> Result<usize, Errno> {
    let fd = fd.as_raw_fd();
    match messages {
        [message] if message.is_plain() => message.send_plain(fd),
        [message] => {
            // SAFETY: The header's pointers and lengths come from slices that the message borrows,
            // and sendmsg only reads.
            let sent =
                unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message.raw.msg_hdr, 0) };
            check(sent).map(|_| 1)
        }
        _ => {
            let count = messages.len() as libc::c_uint;
            // SAFETY: `OutgoingDatagram` is transparent over `mmsghdr`, and there are `count` of
            // them. The headers' pointers and lengths come from slices that the messages borrow.
            // The kernel writes only `msg_len`, which is inside the exclusive slice.
            let sent =
                unsafe { libc::syscall(libc::SYS_sendmmsg, fd, messages.as_mut_ptr(), count, 0) };
            check(sent)
        }
    }
}

/// A buffer for one received datagram.
#[derive(Debug)]
pub(crate) struct RecvBuffer {
    /// The datagram, with all packets if it is merged.
    data: Box<[u8]>,
    /// Sender in the kernel's layout; in the error queue, the destination.
    name: [u8; RAW_LEN],
    control: [u8; CONTROL_SPACE],
    /// Written by the kernel: bytes used of `name`, `data` and `control`, and flags.
    name_len: usize,
    len: usize,
    control_len: usize,
    flags: libc::c_int,
}

impl RecvBuffer {
    /// Returns a buffer for a datagram of up to `len` bytes.
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

    /// Returns whether the datagram was longer than `data`.
    pub(crate) fn is_cut(&self) -> bool {
        self.flags & libc::MSG_TRUNC != 0
    }

    /// Returns whether control messages are missing.
    pub(crate) fn is_control_cut(&self) -> bool {
        self.flags & libc::MSG_CTRUNC != 0
    }

    /// Returns a header that makes the kernel fill this buffer through `iov`.
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

    /// Stores the lengths and flags that the kernel wrote. Lengths are clipped, so that callers
    /// need not check them.
    #[inline]
    fn store(&mut self, header: &libc::msghdr, len: usize) {
        self.name_len = RAW_LEN.min(header.msg_namelen as usize);
        self.len = self.data.len().min(len);
        self.control_len = self.control.len().min(header.msg_controllen as _);
        self.flags = header.msg_flags;
    }
}

/// Fills up to [`RECEIVE_BATCH`] of `buffers` from the front; returns how many, at least one.
///
/// # Errors
///
/// The system's error, if no datagram was received; EAGAIN if none is available.
#[inline]
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    buffers: &mut [RecvBuffer],
    flags: libc::c_int,
) -> Result<usize, Errno> {
    let raw_fd = fd.as_raw_fd();
    match buffers {
        [buffer] => {
            let mut iov = buffer.iov();
            let mut header = buffer.header(&raw mut iov).msg_hdr;
            // SAFETY: The header's pointers and lengths describe `iov`, which lives until after the
            // call, and memory of `buffer`, which is borrowed exclusively.
            let len = unsafe { libc::syscall(libc::SYS_recvmsg, raw_fd, &raw mut header, flags) };
            let len = check(len)?;
            buffer.store(&header, len);
            Ok(1)
        }
        _ => receive_many(raw_fd, buffers, flags),
    }
}

fn receive_many(
    raw_fd: libc::c_int,
    buffers: &mut [RecvBuffer],
    flags: libc::c_int,
) -> Result<usize, Errno> {
    // Filled in place, since `collect` would move the arrays.
    let mut iovs = ArrayVec::<libc::iovec, RECEIVE_BATCH>::new();
    iovs.extend(buffers.iter_mut().map(RecvBuffer::iov).take(RECEIVE_BATCH));
    let mut headers = ArrayVec::<libc::mmsghdr, RECEIVE_BATCH>::new();
    headers.extend(buffers.iter_mut().zip(&mut iovs).map(|(buffer, iov)| buffer.header(iov)));
    let (places, count) = (headers.as_mut_ptr(), headers.len());
    // SAFETY: There are `count` headers. Their pointers and lengths describe elements of `iovs`,
    // which is not accessed until after the call, and memory of `buffers`, which are borrowed
    // exclusively.
    let filled =
        unsafe { libc::syscall(libc::SYS_recvmmsg, raw_fd, places, count, flags, NO_TIMEOUT) };
    let filled = check(filled)?;
    for (buffer, header) in buffers.iter_mut().zip(&headers).take(filled) {
        buffer.store(&header.msg_hdr, header.msg_len as usize);
    }
    Ok(filled)
}

/// Sets a socket option of type int.
///
/// # Errors
///
/// Any error of setsockopt(2).
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: `value` points to `len` bytes, which the kernel only reads.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, len) };
    check(result.into()).map(|_| ())
}

/// Attaches `program` to the group of sockets that share the port of `fd`: it chooses the socket of
/// each packet.
///
/// # Errors
///
/// Any error of setsockopt(2).
pub(crate) fn choose_socket_by(
    fd: BorrowedFd<'_>,
    program: &mut [libc::sock_filter],
) -> Result<(), Errno> {
    let Ok(len) = program.len().try_into() else { return Err(Errno::INVAL) };
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF);
    let len = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let value = (&raw const program).cast();
    // SAFETY: `value` points to `len` bytes, which in turn point to the stated number of
    // instructions. The kernel only reads both.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, len) };
    check(result.into()).map(|_| ())
}

/// Reads a socket option of type int.
///
/// # Errors
///
/// Any error of getsockopt(2).
pub(crate) fn option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: The kernel writes at most `len` bytes, and `place` has room for them.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, place, &raw mut len) };
    check(result.into()).map(|_| value)
}

/// Returns a header whose fields are all 0.
#[inline]
fn empty_header() -> libc::mmsghdr {
    let header = MaybeUninit::<libc::mmsghdr>::zeroed();
    // SAFETY: All fields are integers and pointers, and zero is valid for both. (Some systems have
    // private padding, so the value cannot be written as an expression.)
    unsafe { header.assume_init() }
}

/// Returns a count, or the last error for -1.
#[inline]
fn check(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last_error())
}

#[cold]
fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).expect("the last error is an error number")
}
