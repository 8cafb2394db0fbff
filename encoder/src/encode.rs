//! The whole way: one reader, as many threads that encode as there are cores, one
//! writer. Few blocks are in memory, however long the film is.

mod lines;
pub(crate) mod plan;
pub(crate) mod summary;

use crate::assemble::{Assembler, Finished};
use crate::block::{BlockEncoder, CodedBlock};
use crate::error::EncodeError;
use crate::journal::Header;
use crate::memory::fits_beside_others;
use crate::options::{EncodeOptions, Progress, Share};
use crate::repeat;
use crate::report::EncodeReport;
use crate::source::{Source, Wanted};
use crate::tune;
use crate::work::{Guard, Work, empty_part};
use bytes::Bytes;
use lines::{Crew, Job, Lines, Room};
use media::Span;
use media::library::Library;
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use summary::Made;

/// How often a wish to stop is looked for.
const GLANCE: Duration = Duration::from_millis(50);

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
    let tuned;
    let (options, missed) = if options.aims.any() {
        let (found, missed) = tune::aimed(options, progress, cancel)?;
        tuned = found;
        (&tuned, missed)
    } else {
        (options, Vec::new())
    };
    let mut encoding = Encoding::open(options, &title, started, cancel)?;
    encoding.plan.missed = missed;
    match (options.repeat_to, options.share) {
        (Some(span), None) => {
            let aside = plan::Aside::create(&library)?;
            let (assembler, guard) = encoding.run(aside.library(), progress, cancel)?.title()?;
            let work = encoding.work(&assembler);
            let once = assembler.finish()?;
            guard.finished();
            progress(Progress::Repeating);
            let repeated = repeat::run(&once.title, &library, span, options.replace, cancel)?;
            Ok(encoding.report(&repeated, &work))
        }
        (None, None) => {
            let (assembler, guard) = encoding.run(&library, progress, cancel)?.title()?;
            let work = encoding.work(&assembler);
            let finished = assembler.finish()?;
            guard.finished();
            Ok(encoding.report(&finished, &work))
        }
        (None, Some(share)) => {
            let done = encoding.run(&library, progress, cancel)?;
            encoding.finish_part(done, &share.folder(&title))
        }
        (Some(_), Some(_)) => Err(EncodeError::Option("a part of a title cannot be repeated".into())),
    }
}

/// A film that is about to be encoded.
struct Encoding<'a> {
    options: &'a EncodeOptions,
    plan: Plan,
    film: String,
    source: Option<Source>,
    started: Instant,
}

/// All blocks that were to be encoded are.
struct Done {
    /// None if there was nothing to encode; then the work is still there.
    assembler: Option<Assembler>,
    work: Option<Work>,
    guard: Guard,
    /// Blocks of the whole film.
    blocks: u32,
}

impl Done {
    fn title(self) -> Result<(Assembler, Guard), EncodeError> {
        Ok((self.assembler.ok_or(EncodeError::Empty)?, self.guard))
    }
}

impl<'a> Encoding<'a> {
    fn open(
        options: &'a EncodeOptions,
        title: &media::TitleName,
        started: Instant,
        cancel: &AtomicBool,
    ) -> Result<Self, EncodeError> {
        let EncodeOptions { from, to, keep_going, .. } = *options;
        let film = options.input.identity()?;
        let source = Source::open(Wanted { film: &options.input, from, to, keep_going }, cancel)?;
        let plan = Plan::new(options, title.clone(), &source)?;
        Ok(Self { options, plan, film, source: Some(source), started })
    }

    /// What the journal says that is made here.
    fn header(&self, config: &[u8], keys: &[Bytes]) -> Header {
        let nanos = |span: Option<Span>| span.map(Span::as_nanos);
        Header {
            film: self.film.clone(),
            taken: (nanos(self.options.from), nanos(self.options.to)),
            manifest: self.plan.manifest.clone(),
            config: config.to_vec(),
            keys: keys.iter().map(|key| key.to_vec()).collect(),
        }
    }

    /// The folder to work in, with what was done there before.
    fn begin(&self, library: &Library, keys: &[Bytes]) -> Result<(Work, Guard), EncodeError> {
        let EncodeOptions { replace, resume, share, .. } = *self.options;
        let title = &self.plan.manifest.title;
        let name = share.map_or_else(|| title.to_string(), |share| share.folder(title));
        let (mut work, guard) = Work::open(library, &name, replace, resume)?;
        work.check(share.unwrap_or(Share::ALL), |found| self.header(&found.config, keys))?;
        Ok((work, guard))
    }

    fn run(
        &mut self,
        library: &Library,
        progress: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<Done, EncodeError> {
        let Some(source) = self.source.take() else { return Err(EncodeError::Empty) };
        progress(self.plan.opened());
        let keys = BlockEncoder::new(&self.plan.recipe)?.keys();
        let (work, guard) = self.begin(library, &keys)?;
        let plan = &self.plan;
        let ladder = &plan.recipe.ladder;
        let small = fits_beside_others(ladder, plan.block_pictures);
        let crew = Crew::new(plan.jobs, ladder.enhancements(), small);
        let in_flight = crew.blocks();
        let stop = AtomicBool::new(false);
        let (job_sender, jobs) = sync_channel::<Job>(in_flight);
        let (coded_sender, coded) = sync_channel(in_flight);
        let (credit, credits) = sync_channel(in_flight);
        for _ in 0..in_flight {
            let _ = credit.try_send(());
        }
        let lines = Lines {
            jobs: Mutex::new(jobs),
            stop: &stop,
            recipe: &plan.recipe,
            metrics: plan.metrics,
            room: Room::new(crew.pictures(plan.block_pictures)),
            free: AtomicUsize::new(0),
        };
        let mut writing = Writing::new(self, work, keys)?;
        writing.tell_resumed(progress);
        let wanted = (writing.share, writing.done);
        let written = std::thread::scope(|scope| {
            let lines = &lines;
            let reading =
                scope.spawn(move || lines.read(source, plan.block_ticks, wanted, &job_sender, &credits));
            lines.start(scope, crew, &coded_sender);
            drop(coded_sender);
            let written = writing.run(&coded, &credit, lines.stop, progress, cancel);
            drop(credit);
            let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // What a reader says after it was told to stop explains nothing.
            match (written, read) {
                (Err(error), _) | (Ok(()), Err(error)) => Err(error),
                (Ok(()), Ok(read)) => Ok(read),
            }
        });
        let (assembler, work) = (writing.assembler.take(), writing.work.take());
        let (warnings, blocks) = written?;
        self.plan.warnings = [std::mem::take(&mut self.plan.missed), warnings].concat();
        Ok(Done { assembler, work, guard, blocks })
    }

    fn work(&self, assembler: &Assembler) -> summary::Work {
        let (measured, pictures) = (assembler.measured().clone(), assembler.pictures());
        let by_block = assembler.by_block().to_vec();
        summary::Work { measured, by_block, pictures, elapsed: self.started.elapsed() }
    }

    fn report(&self, finished: &Finished, work: &summary::Work) -> EncodeReport {
        let Finished { title, audio_bytes } = finished;
        let made = Made { manifest: title.manifest(), folder: title.path(), audio_bytes: *audio_bytes };
        summary::report(&made, &self.plan.warnings, work)
    }

    fn finish_part(&self, done: Done, name: &str) -> Result<EncodeReport, EncodeError> {
        let Done { assembler, work, guard, blocks } = done;
        let (folder, work, manifest, audio_bytes) = match (assembler, work) {
            (Some(assembler), _) => {
                let (work, manifest) = (self.work(&assembler), assembler.manifest().clone());
                let audio_bytes = assembler.audio_bytes();
                (assembler.finish_part(name, blocks)?, work, manifest, audio_bytes)
            }
            (None, Some(begun)) => {
                let work = summary::Work { elapsed: self.started.elapsed(), ..summary::Work::default() };
                (empty_part(begun, name, blocks)?, work, self.plan.manifest.clone(), 0)
            }
            (None, None) => return Err(EncodeError::Empty),
        };
        guard.finished();
        let made = Made { manifest: &manifest, folder: &folder, audio_bytes };
        Ok(summary::report(&made, &self.plan.warnings, &work))
    }
}

/// The writer's side.
struct Writing<'a, 'b> {
    encoding: &'a Encoding<'b>,
    share: Share,
    keys: Vec<Bytes>,
    /// Until the first block comes.
    work: Option<Work>,
    assembler: Option<Assembler>,
    /// Blocks written.
    done: u32,
    /// How much of the programme had been written before.
    before: Span,
}

impl<'a, 'b> Writing<'a, 'b> {
    fn new(encoding: &'a Encoding<'b>, work: Work, keys: Vec<Bytes>) -> Result<Self, EncodeError> {
        let share = encoding.options.share.unwrap_or(Share::ALL);
        let (work, assembler) = match work.story.header.clone().filter(|_| !work.story.records.is_empty()) {
            Some(header) => (None, Some(Assembler::take_up(work, &header)?)),
            None => (Some(work), None),
        };
        let done = assembler.as_ref().map_or(0, Assembler::blocks);
        let before = assembler.as_ref().map_or(Span::ZERO, Assembler::span);
        Ok(Self { encoding, share, keys, work, assembler, done, before })
    }

    fn tell_resumed(&self, progress: &mut dyn FnMut(Progress)) {
        if self.done > 0 {
            progress(Progress::Resumed { blocks: self.done, done: self.before });
        }
    }

    fn assembler(&mut self, config: &[u8]) -> Result<&mut Assembler, EncodeError> {
        if let Some(work) = self.work.take() {
            let header = self.encoding.header(config, &self.keys);
            self.assembler = Some(Assembler::take_up(work, &header)?);
        }
        self.assembler.as_mut().ok_or(EncodeError::Empty)
    }

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
        let mut result = Ok(());
        loop {
            let outcome = match coded.recv_timeout(GLANCE) {
                Ok(Ok(block)) => {
                    early.insert(block.index, block);
                    self.write_ready(&mut early, credit, progress)
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
        credit: &SyncSender<()>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EncodeError> {
        while let Some(block) = early.remove(&self.share.nth(self.done)) {
            let assembler = self.assembler(&block.config)?;
            assembler.push(block.index, &block.config, &block.layers, block.hashes, block.measured)?;
            let (done, pictures) = (assembler.span(), assembler.pictures());
            progress(self.told(block.index, done, pictures));
            self.done += 1;
            let _ = credit.try_send(());
        }
        Ok(())
    }

    fn told(&self, index: u32, done: Span, pictures: u64) -> Progress {
        let elapsed = self.encoding.started.elapsed();
        let left = self.encoding.plan.length.map(|length| {
            let rest = length.saturating_sub(done).as_secs_f64();
            let new = done.saturating_sub(self.before).as_secs_f64();
            elapsed.mul_f64(rest / new.max(1e-3))
        });
        Progress::Block { index, done, pictures, elapsed, left }
    }
}
