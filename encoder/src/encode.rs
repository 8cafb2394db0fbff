//! The whole way: one reader, as many block encoders as there are cores, one
//! writer. At most `jobs + 1` blocks are in memory, however long the film is.

mod plan;
mod summary;

use crate::assemble::{Assembler, Shared};
use crate::block::{BlockEncoder, CodedBlock, Recipe};
use crate::blocks::{Cutter, FilmBlock};
use crate::error::EncodeError;
use crate::options::{EncodeOptions, Metrics, Progress};
use crate::repeat;
use crate::report::{EncodeReport, Measured};
use crate::source::Source;
use media::Span;
use media::container::AudioSample;
use media::library::Library;
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a wish to stop is looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// Of how many blocks one is compared with the film.
const SAMPLED: u32 = 10;

/// A block on its way to an encoder.
type Job = (FilmBlock, Vec<AudioSample>);

/// Encodes a film into a title of a library. `progress` is called in the
/// caller's thread. Setting `cancel` ends it soon with
/// [`EncodeError::Cancelled`].
///
/// The same film and settings give the same bytes, whatever the number of jobs.
///
/// # Errors
/// See [`EncodeError`]; the library is as before then.
pub fn encode(
    options: &EncodeOptions,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<EncodeReport, EncodeError> {
    crate::init()?;
    let started = Instant::now();
    let title = plan::title_name(options)?;
    plan::check(options)?;
    let library = Library::create(&options.library)?;
    plan::refuse_existing(&library, &title, options.replace)?;
    match options.repeat_to {
        None => {
            let mut encoding = Encoding::open(options, &title, started, cancel)?;
            let (assembler, measured) = encoding.run(&library, options.replace, progress, cancel)?;
            let pictures = assembler.pictures();
            let work = summary::Work { measured, pictures, elapsed: started.elapsed() };
            Ok(summary::report(&encoding.plan, &assembler.finish()?, &work))
        }
        Some(span) => {
            let aside = plan::Aside::create(&library)?;
            let mut encoding = Encoding::open(options, &title, started, cancel)?;
            let (assembler, measured) = encoding.run(aside.library(), true, progress, cancel)?;
            let pictures = assembler.pictures();
            let once = assembler.finish()?;
            progress(Progress::Repeating);
            let repeated = repeat::run(&once.title, &library, span, options.replace, cancel)?;
            let work = summary::Work { measured, pictures, elapsed: started.elapsed() };
            Ok(summary::report(&encoding.plan, &repeated, &work))
        }
    }
}

/// A film that is about to be encoded.
struct Encoding {
    plan: Plan,
    source: Option<Source>,
    started: Instant,
}

/// What the threads share.
struct Lines<'a> {
    jobs: Mutex<Receiver<Job>>,
    stop: &'a AtomicBool,
    recipe: &'a Recipe,
    metrics: Metrics,
}

impl Encoding {
    fn open(
        options: &EncodeOptions,
        title: &media::TitleName,
        started: Instant,
        cancel: &AtomicBool,
    ) -> Result<Self, EncodeError> {
        let source = Source::open(&options.input, options.from, options.to, cancel)?;
        let plan = Plan::new(options, title.clone(), &source)?;
        Ok(Self { plan, source: Some(source), started })
    }

    fn run(
        &mut self,
        library: &Library,
        replace: bool,
        progress: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<(Assembler, Measured), EncodeError> {
        let Some(source) = self.source.take() else { return Err(EncodeError::Empty) };
        let plan = &self.plan;
        progress(plan.opened());
        let keys = BlockEncoder::new(plan.recipe.clone())?.keys();
        let in_flight = plan.jobs + 1;
        let stop = AtomicBool::new(false);
        let (job_sender, jobs) = sync_channel::<Job>(in_flight);
        let (coded_sender, coded) = sync_channel(in_flight);
        let (credit, credits) = sync_channel(in_flight);
        for _ in 0..in_flight {
            let _ = credit.try_send(());
        }
        let lines =
            Lines { jobs: Mutex::new(jobs), stop: &stop, recipe: &plan.recipe, metrics: plan.metrics };
        let mut writing = Writing {
            plan,
            library,
            replace,
            keys,
            assembler: None,
            measured: Measured::default(),
            started: self.started,
        };
        let written = std::thread::scope(|scope| {
            let lines = &lines;
            let reading =
                scope.spawn(move || read(source, plan.block_ticks, &job_sender, &credits, lines.stop));
            for _ in 0..plan.jobs {
                let sender = coded_sender.clone();
                scope.spawn(move || work(lines, &sender));
            }
            drop(coded_sender);
            let written = writing.run(&coded, &credit, lines.stop, progress, cancel);
            drop(credit);
            let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // What a reader says after it was told to stop explains nothing.
            match (written, read) {
                (Err(error), _) | (Ok(()), Err(error)) => Err(error),
                (Ok(()), Ok(warnings)) => Ok(warnings),
            }
        });
        let measured = std::mem::take(&mut writing.measured);
        let assembler = writing.assembler.take();
        self.plan.warnings = written?;
        Ok((assembler.ok_or(EncodeError::Empty)?, measured))
    }
}

/// Reads the film block by block, each one when there is room for it.
fn read(
    mut source: Source,
    block_ticks: u64,
    jobs: &SyncSender<Job>,
    credits: &Receiver<()>,
    stop: &AtomicBool,
) -> Result<Vec<String>, EncodeError> {
    let mut cutter = Cutter::new(block_ticks);
    let hand_over = |source: &mut Source, block: FilmBlock| {
        let sound = source.sound_until(block.end, stop)?;
        // Closed channels mean that somebody failed, and says so.
        let sent = jobs.send((block, sound)).is_ok() && credits.recv().is_ok();
        if sent { Ok(()) } else { Err(EncodeError::Cancelled) }
    };
    if credits.recv().is_err() {
        return Err(EncodeError::Cancelled);
    }
    while let Some(shown) = source.next_picture(stop)? {
        if let Some(block) = cutter.push(shown) {
            hand_over(&mut source, block)?;
        }
    }
    if let Some(block) = cutter.finish() {
        let sound = source.sound_until(block.end, stop)?;
        let _ = jobs.send((block, sound));
    }
    Ok(source.warnings())
}

/// Encodes blocks until there are no more.
fn work(lines: &Lines<'_>, coded: &SyncSender<Result<CodedBlock, EncodeError>>) {
    let mut encoder = match BlockEncoder::new(lines.recipe.clone()) {
        Ok(encoder) => encoder,
        Err(error) => {
            let _ = coded.send(Err(error));
            return;
        }
    };
    loop {
        let job = lines.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((block, sound)) = job else { return };
        if lines.stop.load(Ordering::Relaxed) {
            return;
        }
        let measure = match lines.metrics {
            Metrics::Off => false,
            Metrics::Sampled => block.index.is_multiple_of(SAMPLED),
            Metrics::Full => true,
        };
        if coded.send(encoder.encode(&block, sound, measure)).is_err() {
            return;
        }
    }
}

/// The writer's side.
struct Writing<'a> {
    plan: &'a Plan,
    library: &'a Library,
    replace: bool,
    keys: Vec<bytes::Bytes>,
    assembler: Option<Assembler>,
    measured: Measured,
    started: Instant,
}

impl Writing<'_> {
    /// Writes blocks in order until there are no more. After a failure the
    /// others are told to stop and what still comes is thrown away.
    fn run(
        &mut self,
        coded: &Receiver<Result<CodedBlock, EncodeError>>,
        credit: &SyncSender<()>,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<(), EncodeError> {
        let mut early = BTreeMap::new();
        let mut next = 0;
        let mut result = Ok(());
        loop {
            let outcome = match coded.recv_timeout(GLANCE) {
                Ok(Ok(block)) => {
                    early.insert(block.index, block);
                    self.write_ready(&mut early, &mut next, credit, progress)
                }
                Ok(Err(error)) => Err(error),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return result,
            };
            let outcome = match outcome {
                Ok(()) if cancel.load(Ordering::Relaxed) => Err(EncodeError::Cancelled),
                outcome => outcome,
            };
            if let Err(error) = outcome
                && result.is_ok()
            {
                stop.store(true, Ordering::Relaxed);
                result = Err(error);
            }
            if result.is_err() {
                early.clear();
                // The reader may wait for room.
                let _ = credit.try_send(());
            }
        }
    }

    fn write_ready(
        &mut self,
        early: &mut BTreeMap<u32, CodedBlock>,
        next: &mut u32,
        credit: &SyncSender<()>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EncodeError> {
        while let Some(block) = early.remove(next) {
            let assembler = match &mut self.assembler {
                Some(assembler) => assembler,
                none => {
                    let shared = Shared { config: block.config.clone(), keys: self.keys.clone() };
                    let manifest = self.plan.manifest.clone();
                    none.insert(Assembler::create(self.library, self.replace, manifest, shared)?)
                }
            };
            self.measured.add(&block.measured);
            assembler.push(&block.config, &block.layers, block.base_hash, block.quality_hashes)?;
            let (done, pictures) = (assembler.span(), assembler.pictures());
            progress(self.told(*next, done, pictures));
            *next += 1;
            let _ = credit.try_send(());
        }
        Ok(())
    }

    fn told(&self, index: u32, done: Span, pictures: u64) -> Progress {
        let elapsed = self.started.elapsed();
        let left = self.plan.length.map(|length| {
            let rest = length.saturating_sub(done).as_secs_f64();
            elapsed.mul_f64(rest / done.as_secs_f64().max(1e-3))
        });
        Progress::Block { index, done, pictures, elapsed, left }
    }
}
