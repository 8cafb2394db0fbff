//! The page's server: files that are part of the program, one socket for what
//! changes and for pictures, one door for deeds.

use super::deeds::{Deed, DeedError, Orders};
use super::hands::Screens;
use super::seat::Notes;
use super::state::{MAX_VIEWERS, Snapshot};
use super::{PageError, guard, tour};
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Where the socket is.
pub(super) const LIVE: &str = "/live";
/// The longest request.
const MAX_REQUEST: usize = 4 * 1024;
/// The longest thing said on the socket.
const MAX_SAID: usize = 1024;
/// Who looks at once.
const MAX_LOOKING: usize = 16;
/// How often a socket looks for new pictures.
const PICTURES: Duration = Duration::from_millis(40);
/// How long a browser may take to take something.
const PATIENCE: Duration = Duration::from_secs(10);

/// What every answer is made from.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) pages: watch::Receiver<Arc<Snapshot>>,
    pub(super) screens: Screens,
    pub(super) orders: Orders,
    pub(super) notes: Notes,
}

#[derive(Clone, Debug)]
struct Served {
    shared: Shared,
    looking: Arc<AtomicUsize>,
    tour: tour::Guide,
}

/// The files of the page: path, kind, content.
const FILES: [(&str, &str, &str); 12] = [
    ("/", "text/html; charset=utf-8", include_str!("assets/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("/parts.css", "text/css; charset=utf-8", include_str!("assets/parts.css")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/main.js", SCRIPT, include_str!("assets/main.js")),
    ("/socket.js", SCRIPT, include_str!("assets/socket.js")),
    ("/wire.js", SCRIPT, include_str!("assets/wire.js")),
    ("/map.js", SCRIPT, include_str!("assets/map.js")),
    ("/shapes.js", SCRIPT, include_str!("assets/shapes.js")),
    ("/viewers.js", SCRIPT, include_str!("assets/viewers.js")),
    ("/menu.js", SCRIPT, include_str!("assets/menu.js")),
    ("/tour.js", SCRIPT, include_str!("assets/tour.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Serves until it cannot any more.
pub(super) async fn run(listener: TcpListener, shared: Shared) -> Result<(), PageError> {
    let own = listener.local_addr().map_err(PageError::Serve)?;
    let tour = tour::Guide::new(shared.orders.clone(), shared.pages.clone(), shared.notes.clone());
    let served = Served { shared, looking: Arc::default(), tour };
    let mut router = Router::new().route(LIVE, get(live)).route("/deed", post(deed));
    for (path, kind, content) in FILES {
        router = router.route(path, get(move || async move { ([(header::CONTENT_TYPE, kind)], content) }));
    }
    let router = router
        .with_state(served)
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .layer(from_fn(move |request: Request, next: Next| guard::check(own, request, next)));
    axum::serve(listener, router).await.map_err(PageError::Serve)
}

/// A deed: done, or why not in words.
async fn deed(State(served): State<Served>, body: Bytes) -> Response {
    let Ok(deed) = serde_json::from_slice::<Deed>(&body) else {
        return (StatusCode::BAD_REQUEST, "this is no deed\n").into_response();
    };
    if !served.shared.pages.borrow().ready {
        return (StatusCode::CONFLICT, DeedError::NotReady.to_string()).into_response();
    }
    let done = match deed {
        Deed::Tour { step } => served.tour.begin(step).await,
        other => served.shared.orders.ask(other).await,
    };
    match done {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(DeedError::Failed(why)) => (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
        Err(why) => (StatusCode::CONFLICT, why.to_string()).into_response(),
    }
}

async fn live(State(served): State<Served>, upgrade: WebSocketUpgrade) -> Response {
    let place = Place::take(&served.looking);
    let Some(place) = place else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many look already\n").into_response();
    };
    let upgrade = upgrade.max_message_size(MAX_SAID).max_frame_size(MAX_SAID);
    upgrade.on_upgrade(move |socket| async move {
        look(socket, served.shared).await;
        drop(place);
    })
}

/// One of the places from which one may look, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(looking: &Arc<AtomicUsize>) -> Option<Self> {
        let before = looking.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(looking));
        (before < MAX_LOOKING).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one browser has been shown.
struct Eyes {
    seen: Snapshot,
    /// Whose pictures it wants.
    wants: Vec<String>,
    screens: BTreeMap<String, watch::Receiver<Bytes>>,
}

/// Shows everything to one browser until it is gone.
async fn look(mut socket: WebSocket, shared: Shared) {
    let mut pages = shared.pages.clone();
    let mut eyes = Eyes { seen: Snapshot::default(), wants: Vec::new(), screens: BTreeMap::new() };
    let mut tick = interval(PICTURES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pages.mark_changed();
    loop {
        let sent = tokio::select! {
            changed = pages.changed() => match changed {
                Ok(()) => {
                    let page = Arc::clone(&pages.borrow_and_update());
                    let delta = page.since(&eyes.seen);
                    eyes.seen = Snapshot::clone(&page);
                    let Ok(text) = serde_json::to_string(&delta) else { return };
                    send(&mut socket, Message::from(text)).await
                }
                Err(_) => return,
            },
            said = socket.recv() => match said {
                Some(Ok(Message::Text(text))) => eyes.ask_for(text.as_str()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => true,
            },
            _ = tick.tick() => show(&mut socket, &mut eyes, &shared.screens).await,
        };
        if !sent {
            return;
        }
    }
}

impl Eyes {
    /// Whose pictures are wanted: a list of names. False for anything else.
    fn ask_for(&mut self, text: &str) -> bool {
        let Ok(names) = serde_json::from_str::<Vec<String>>(text) else { return false };
        self.wants = names.into_iter().take(MAX_VIEWERS).collect();
        self.screens.retain(|name, _| self.wants.contains(name));
        true
    }
}

/// Sends the pictures that are new: the length of the name, the name, the JPEG.
async fn show(socket: &mut WebSocket, eyes: &mut Eyes, screens: &Screens) -> bool {
    let there: Vec<_> = {
        let screens = screens.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |name: &String| screens.get(name).map(|preview| (name.clone(), preview.pictures()));
        // Who left and came again has other pictures.
        eyes.screens.retain(|name, pictures| screens.contains_key(name) && pictures.has_changed().is_ok());
        eyes.wants.iter().filter(|name| !eyes.screens.contains_key(*name)).filter_map(find).collect()
    };
    for (name, mut pictures) in there {
        pictures.mark_changed();
        eyes.screens.insert(name, pictures);
    }
    for (name, pictures) in &mut eyes.screens {
        if !pictures.has_changed().unwrap_or(false) {
            continue;
        }
        let picture = pictures.borrow_and_update().clone();
        let Ok(length) = u8::try_from(name.len()) else { continue };
        if picture.is_empty() {
            continue;
        }
        let mut framed = Vec::with_capacity(1 + name.len() + picture.len());
        framed.push(length);
        framed.extend_from_slice(name.as_bytes());
        framed.extend_from_slice(&picture);
        if !send(socket, Message::Binary(framed.into())).await {
            return false;
        }
    }
    true
}

async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(timeout(PATIENCE, socket.send(message)).await, Ok(Ok(())))
}
