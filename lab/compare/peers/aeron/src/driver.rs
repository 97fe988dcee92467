//! The media driver of a process, and the thread that runs it.

use std::ffi::{CString, OsStr};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{fs, io, process};

use compare_kit::{Error, name_of};
use rusteron_media_driver::bindings::aeron_threading_mode_enum as Mode;
use rusteron_media_driver::{
    Aeron, AeronCError, AeronContext, AeronDriver, AeronDriverContext, EmbeddedMediaDriver,
};

/// Length of a term in bytes; the longest message is an eighth of it.
const TERM: usize = 8 << 20;
/// Bytes of a packet.
const MTU: usize = 8 << 10;
/// Bytes of buffers and windows, if the system allows that.
const WINDOW: usize = 2 << 20;

/// Number of drivers that this process has opened.
static DRIVERS: AtomicU32 = AtomicU32::new(0);

/// Maximum time without running the driver.
const LONGEST_PAUSE_MS: u64 = 120_000;

/// A media driver.
pub(crate) struct Driver {
    folder: CString,
    run: Run,
}

/// Owner of the driver loop.
enum Run {
    /// The thread that sends and receives.
    Invoked(Box<AeronDriver>),
    /// A separate thread.
    Thread { _ends_with_it: EmbeddedMediaDriver },
    /// Another process.
    Elsewhere,
}

impl Driver {
    /// Returns a driver for this side of a network, run by [`Driver::work`].
    pub(crate) fn invoked() -> Result<Self, Error> {
        remove_leftovers()?;
        let number = DRIVERS.fetch_add(1, Relaxed);
        let folder = folder(&format!("apus-compare-{}-{number}", process::id()))?;
        let context = context(&folder)?;
        context.set_threading_mode(Mode::AERON_THREADING_MODE_INVOKER)?;
        let driver = AeronDriver::new(&context)?;
        driver.start(true)?;
        Ok(Self { folder, run: Run::Invoked(Box::new(driver)) })
    }

    /// Returns the driver of all processes that use this server, run by a thread of the server.
    pub(crate) fn launched(server: SocketAddr) -> Result<Self, Error> {
        let folder = folder(&name_of(server))?;
        let context = context(&folder)?;
        context.set_threading_mode(Mode::AERON_THREADING_MODE_SHARED)?;
        let driver = AeronDriver::launch_embedded_guard(context, false);
        Ok(Self { folder, run: Run::Thread { _ends_with_it: driver } })
    }

    /// The driver that this server has launched.
    pub(crate) fn of(server: SocketAddr) -> Result<Self, Error> {
        Ok(Self { folder: folder(&name_of(server))?, run: Run::Elsewhere })
    }

    /// Connects to the driver.
    pub(crate) fn connect(&self) -> Result<Aeron, Error> {
        let context = AeronContext::new()?;
        context.set_dir(&self.folder)?;
        context.set_pre_touch_mapped_memory(true)?;
        // The driver does not run while its thread waits for a measurement to start.
        context.set_driver_timeout_ms(LONGEST_PAUSE_MS)?;
        let aeron = Aeron::new(&context)?;
        aeron.start()?;
        Ok(aeron)
    }

    /// Runs one duty cycle of the driver, if this thread runs it, and returns the amount of work
    /// done.
    pub(crate) fn work(&self) -> Result<i32, AeronCError> {
        match &self.run {
            Run::Invoked(driver) => driver.main_do_work(),
            Run::Thread { .. } | Run::Elsewhere => Ok(0),
        }
    }

    /// Runs the driver until it has completed a request.
    pub(crate) fn until<T>(
        &self,
        poll: impl Fn() -> Result<Option<T>, AeronCError>,
    ) -> Result<T, Error> {
        loop {
            if let Some(done) = poll()? {
                return Ok(done);
            }
            self.work()?;
        }
    }
}

/// The folder of a driver, in memory as its documentation recommends.
fn folder(name: &str) -> Result<CString, Error> {
    Ok(CString::new(format!("/dev/shm/{name}"))?)
}

/// Removes the folders of drivers whose processes were killed, like the nodes of a network.
fn remove_leftovers() -> io::Result<()> {
    for entry in fs::read_dir("/dev/shm")? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let process = name.strip_prefix("apus-compare-").and_then(|rest| rest.split_once('-'));
        if process.is_some_and(|(id, _)| !Path::new("/proc").join(id).exists()) {
            // Another process may have removed it.
            let _ = fs::remove_dir_all(path);
        }
    }
    Ok(())
}

fn context(folder: &CString) -> Result<AeronDriverContext, Error> {
    let context = AeronDriverContext::new()?;
    context.set_dir(folder)?;
    context.set_dir_delete_on_start(true)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.set_term_buffer_sparse_file(false)?;
    context.set_term_buffer_length(TERM)?;
    context.set_ipc_term_buffer_length(TERM)?;
    context.set_mtu_length(MTU)?;
    // A driver with a window longer than its buffers does not start.
    let allowed = fs::read_to_string("/proc/sys/net/core/rmem_max")?.trim().parse()?;
    let window = WINDOW.min(allowed);
    context.set_socket_so_rcvbuf(window)?;
    context.set_socket_so_sndbuf(window)?;
    context.set_rcv_initial_window_length(window)?;
    Ok(context)
}
