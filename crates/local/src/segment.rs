//! How does memory come to be shared, without a name and without a trace?
//!
//! The client makes a memfd, seals it and hands its descriptor over a unix socket. It has no name in any
//! file system: when the last process that maps it ends, however it ends, the kernel frees it.
//!
//! The seals are what makes access safe for the other side: without F_SEAL_SHRINK a peer could cut the file
//! short, and the next access would end this process with SIGBUS. The file must also be one of the kernel's
//! own memory files: one on another file system could fail to provide a page, one of huge pages could run
//! out of them. What a peer can still do is to punch holes, which read as 0: that is scribbling.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::error::Rejection;
use crate::layout::RingSizes;
use crate::memory::Memory;

/// What a file of shared memory must have: its length is fixed, and so are its seals.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// `TMPFS_MAGIC` of statfs(2): where memory files live, unless they are of huge pages.
const TMPFS: u64 = 0x0102_1994;

/// A sealed file of so many bytes, all 0. The name is for people who look into /proc.
///
/// # Errors
///
/// The system's.
pub(crate) fn make(name: &str, len: usize) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know how to forbid execution, which is a precaution and no more.
    let file = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags))?;
    rustix::fs::ftruncate(&file, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Whether this is a sealed file of so many bytes, which never ends an access with SIGBUS.
///
/// # Errors
///
/// The system's, if it is nothing that has seals.
pub(crate) fn is_sound(file: &OwnedFd, len: usize) -> Result<bool, Errno> {
    // The seals first: only memory files have them. Any other question might be answered by a file
    // system of the peer's own, or never.
    let seals = rustix::fs::fcntl_get_seals(file)?;
    let system = rustix::fs::fstatfs(file)?;
    let length = rustix::fs::fstat(file)?.st_size;
    Ok(system.f_type as u64 == TMPFS
        && seals.contains(SEALS)
        && u64::try_from(length) == Ok(len as u64))
}

/// Memory to be shared, not mapped yet.
#[derive(Debug)]
pub(crate) struct Segment {
    file: OwnedFd,
    sizes: RingSizes,
}

impl Segment {
    /// New memory, all 0.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(crate) fn create(sizes: RingSizes) -> Result<Self, Errno> {
        Ok(Self { file: make("apus-local", sizes.mapped())?, sizes })
    }

    /// Memory that a peer has made.
    ///
    /// # Errors
    ///
    /// [`Rejection::Memory`]: it is not what it should be.
    pub(crate) fn adopt(file: OwnedFd, sizes: RingSizes) -> Result<Self, Rejection> {
        match is_sound(&file, sizes.mapped()) {
            Ok(true) => Ok(Self { file, sizes }),
            Ok(false) | Err(_) => Err(Rejection::Memory),
        }
    }

    /// Maps it.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(crate) fn map(&self) -> std::io::Result<Memory> {
        Memory::map(self.file.as_fd(), self.sizes.mapped())
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: RingSizes = RingSizes { short: 4096, bulk: 4096 };

    fn memfd(flags: MemfdFlags, seals: SealFlags, len: usize) -> OwnedFd {
        let flags = flags | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, len as u64).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn what_one_side_makes_the_other_adopts() {
        let made = Segment::create(SIZES).unwrap();
        let adopted = Segment::adopt(made.as_fd().try_clone_to_owned().unwrap(), SIZES).unwrap();
        let (here, there) = (made.map().unwrap(), adopted.map().unwrap());
        here.word(4096).store(7, crate::sync::Ordering::Release);
        assert_eq!(there.word(4096).load(crate::sync::Ordering::Acquire), 7);
        let shorter = rustix::fs::ftruncate(&made, 4096);
        assert_eq!(shorter, Err(Errno::PERM), "S2: it cannot become shorter");
    }

    #[test]
    fn memory_that_could_do_harm_is_not_adopted() {
        let len = SIZES.mapped();
        let none = MemfdFlags::empty();
        let cases = [
            ("no seal on seals", memfd(none, SealFlags::SHRINK | SealFlags::GROW, len)),
            ("may shrink", memfd(none, SealFlags::GROW | SealFlags::SEAL, len)),
            ("shorter than announced", memfd(none, SEALS, len - 4096)),
            ("longer than announced", memfd(none, SEALS, len + 4096)),
            ("a device", std::fs::File::open("/dev/zero").unwrap().into()),
            ("a pipe", rustix::pipe::pipe().unwrap().0),
            (
                "a file on disk",
                std::fs::File::open(std::env::current_exe().unwrap()).unwrap().into(),
            ),
        ];
        for (what, file) in cases {
            assert_eq!(Segment::adopt(file, SIZES).unwrap_err(), Rejection::Memory, "{what}");
        }
    }
}
