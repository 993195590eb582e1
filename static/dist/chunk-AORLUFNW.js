import{$ as T,E as b,I as st,Ia as lt,K as it,L as nt,P as k,Pa as dt,Ua as I,V as at,W as A,X as x,Ya as pt,Z as m,_a as S,aa as $,bb as Q,c as a,d as X,da as E,e as c,eb as ut,fa as ot,g as H,ga as p,ia as rt,jb as mt,ka as d,l as C,la as _,ma as ct,n as g,o as G,p as J,qa as u,r as Z,s as tt,t as W,ua as M,v as et,va as f,vb as ft,wa as ht}from"./chunk-KWRIH4ZQ.js";var Vt=(s,t)=>s.notifications||t.notifications;function Xt({quiet_from:s,quiet_until:t,time_zone:e},i){if(!s||!t)return!1;let n;try{let o=new Intl.DateTimeFormat("en-GB",{hour:"2-digit",minute:"2-digit",hourCycle:"h23",timeZone:e}).formatToParts(i),r=h=>o.find(l=>l.type===h)?.value??"00";n=`${r("hour")}:${r("minute")}`}catch{return!1}return s<t?s<=n&&n<t:n>=s||n<t}function _t(s,t,{isMention:e,at:i,isDirect:n,isFollowed:o=!1},r){if(s.muted||r.getTime()-i>6e5||Xt(t,r))return!1;let h=Vt(s,t);return h==="mentions"?n||e||o:h==="all"}function Ae({muted:s,notifications:t,unread:e,unread_mentions:i=0}){let n=t==="none"?0:Math.min(i,e);if(!s)return{shown:e,counts:e>0,mentions:n};let o=n>0;return{shown:o?n:e,counts:o,mentions:n}}var Gt=160,Jt=new BroadcastChannel("uamp.pushes"),wt="uamp.notifications.asked";function U(){return!("Notification"in window)||!navigator.locks?"unsupported":Notification.permission}async function qe(){return U()==="default"&&await Notification.requestPermission(),Zt(),dispatchEvent(new Event("notification-permission")),U()}var De=()=>U()==="default"&&!localStorage.getItem(wt);function Zt(){localStorage.setItem(wt,"1")}var gt=class{constructor(t,e,i,n){if(this._store=t,this._settings=e,this._me=i,this._people=n,this._isLeader=!1,this._chatId="",this._viewing=new AbortController,this._last=null,!!navigator.locks){Jt.addEventListener("message",({data:o})=>{this._last?.messageId===o&&this._last?.shown.close()}),navigator.serviceWorker?.addEventListener("message",({data:o})=>{o?.type==="open-message"&&dispatchEvent(new CustomEvent("open-message",{detail:o}))}),navigator.locks.request(`uamp.notifier.${i.id}`,()=>(this._isLeader=!0,new Promise(()=>{})));for(let[o,r]of[[document,"visibilitychange"],[window,"focus"],[window,"blur"]])o.addEventListener(r,()=>this._look());t.addEventListener("arrived",({detail:o})=>this._arrived(o))}}show(t){this._chatId=t,this._look()}_lockOf(t){return`uamp.viewing.${this._me.id}.${t}`}_look(){if(!navigator.locks)return;this._viewing.abort(),this._viewing=new AbortController;let{signal:t}=this._viewing;if(!this._chatId||document.hidden||!document.hasFocus())return;let e=new Promise(i=>t.addEventListener("abort",i,{once:!0}));navigator.locks.request(this._lockOf(this._chatId),{mode:"shared",signal:t},()=>e).catch(()=>{})}async _arrived({chat:t,message:e}){if(!this._isLeader||U()!=="granted")return;let i=this._store.others(t),n={isMention:this._isMention(e),at:e.created_at,isDirect:i.length===1,isFollowed:!!e.is_followed};if(!_t(t,this._settings.values,n,new Date))return;let{held:o=[]}=await navigator.locks.query();o.some(({name:r})=>r===this._lockOf(t.id))||this._notify(t,e)}_isMention({mentions:t}){return!!t?.includes(this._me.id)}_notify(t,e){let{notification_text:i,notification_sound:n}=this._settings.values,o=this._store.nameOf(t),r=e.sender_kind==="agent"?e.name:this._people.nameOf(e.name),h=this._store.others(t).length===1,l=!!(e.thread&&!e.also_in_chat),w=i?l?c(a("%(name)s replied in a thread in %(chat)s"),{name:r,chat:o}):h?r:c("%(author)s · %(name)s",{author:r,name:o}):a("New message"),z=this._isMention(e)?a("You were mentioned"):l?a("New reply in a thread"):"",Yt={body:i?S(e.content,Gt)||a("sent a file"):z,tag:l?`thread ${e.thread}`:`chat ${t.id}`,renotify:!0,silent:!n,icon:te()};try{let v=new Notification(w,Yt);this._last={messageId:e.id,shown:v},v.onclick=()=>{window.focus(),v.close(),dispatchEvent(new CustomEvent("open-message",{detail:{chatId:t.id,messageId:e.id,threadId:l?e.thread:""}}))}}catch(v){if(!(v instanceof TypeError))throw v}}};function te(){let s=document.querySelector('link[rel="icon"]');return s instanceof HTMLLinkElement?s.href:void 0}var ee="uamp.page";async function Re(s){navigator.serviceWorker&&(s.addEventListener("state",()=>s.state.phase==="open"&&yt({unlessKept:!0})),await yt({unlessKept:!1}))}async function yt({unlessKept:s}){try{if(s&&await caches.match("/",{cacheName:ee,ignoreVary:!0}))return;await navigator.serviceWorker.register("/service-worker.js");let{active:t}=await navigator.serviceWorker.ready;t?.postMessage({type:"keep-page"})}catch(t){if(!(t instanceof TypeError||t instanceof DOMException))throw t}}var vt=new BroadcastChannel("uamp.sign-out"),Ne=s=>vt.addEventListener("message",s),je=()=>vt.postMessage(null);var se=`
👍 thumbs_up +1 like yes agree
👎 thumbs_down -1 dislike no
❤️ heart love
😂 joy laughing tears
🎉 party tada celebrate
👀 eyes look
✅ white_check_mark done yes
❌ x no wrong
🙏 pray thanks please
🔥 fire hot
🚀 rocket ship launch
💯 100 hundred perfect
😀 grinning happy
😄 smile happy
😁 grin
😅 sweat_smile relief
🤣 rofl laughing
😊 blush happy
🙂 slightly_smiling
😉 wink
😍 heart_eyes love
🥰 smiling_hearts love
😘 kiss
😎 sunglasses cool
🤩 star_struck wow
🥳 celebrating partying birthday
😏 smirk
😐 neutral
🙄 eye_roll
😬 grimacing
🤔 thinking hmm
🤨 raised_eyebrow
😮 open_mouth surprised wow
😲 astonished
😱 scream
😢 cry sad
😭 sob sad
😞 disappointed sad
😔 pensive sad
😟 worried
😕 confused
🙁 frowning sad
😤 huff
😠 angry
😡 rage
😴 sleeping tired
🥱 yawning tired
🤒 thermometer ill sick
🤧 sneezing cold
🤯 mind_blown
😇 innocent angel
🤖 robot agent bot
👻 ghost
💩 poop
👋 wave hello bye
🤚 raised_hand
✋ hand stop
👌 ok_hand
✌️ victory peace
🤞 fingers_crossed luck
👏 clap applause
🙌 raised_hands hooray
🤝 handshake deal
💪 muscle strong
✍️ writing
🙋 raising_hand question
🤷 shrug dunno
🤦 facepalm
👨‍👩‍👧 family
👶 baby
🐶 dog
🐱 cat
🐻 bear
🦊 fox
🐝 bee
🦋 butterfly
🌱 seedling plant
🌳 tree
🌸 blossom flower
🌹 rose flower
☀️ sun sunny
⛅ partly_cloudy
🌧️ rain
❄️ snowflake cold
🌈 rainbow
⭐ star
✨ sparkles
⚡ zap lightning
🌍 earth world
🍎 apple
🍌 banana
🍓 strawberry
🥕 carrot
🍞 bread
🧀 cheese
🍕 pizza
🍔 burger
🍝 spaghetti pasta
🍣 sushi
🍰 cake
🎂 birthday cake
🍪 cookie
🍫 chocolate
☕ coffee tea
🍺 beer
🍷 wine
🥂 cheers champagne
⚽ soccer football
🏀 basketball
🏆 trophy win
🥇 first gold
🎮 game
🎵 music note
🎸 guitar
🎨 art paint
🎬 movie
📷 camera photo
🚗 car
🚲 bike
🚆 train
✈️ airplane flight
🏠 house home
🏖️ beach holiday
🎁 gift present
🎈 balloon
💡 bulb idea
📌 pushpin pin
📎 paperclip attach
📅 calendar date
⏰ alarm clock time
⏳ hourglass wait
💰 money
💳 card pay
📈 chart_up growth
📉 chart_down
📝 memo note
📚 books
🔑 key
🔒 lock
🔧 wrench fix
🐛 bug
💻 laptop computer
📱 phone
📧 email mail
🔔 bell
❓ question
❗ exclamation
⚠️ warning
🚫 prohibited no
🆗 ok
➕ plus
➖ minus
🔁 repeat again
💔 broken_heart
💙 blue_heart
💚 green_heart
💛 yellow_heart
💜 purple_heart
🖤 black_heart`,bt=se.trim().split(`
`).map(s=>{let[t,...e]=s.split(" ");return{emoji:t,name:e[0],words:e.join(" ")}}),ie=new Map(bt.flatMap(({emoji:s,words:t})=>t.split(" ").map(e=>[e,s])).reverse());function Be(s){let t=s.trim().toLowerCase().replaceAll(":","").split(/[\s_]+/).filter(Boolean);return bt.filter(e=>t.every(i=>e.words.includes(i))||e.emoji===s.trim())}function kt(s,t){let e=/(?:^|[\s(])(:([a-z0-9_+-]{1,30}):)$/.exec(s.slice(0,t)),i=e&&ie.get(e[2]);if(!i)return null;let n=t-e[1].length;return{text:s.slice(0,n)+i+s.slice(t),caret:n+i.length}}var D=({id:s})=>`/chats/${encodeURIComponent(s)}`;async function y(s,t){try{await t(),u(s)}catch(e){if(!g(e))throw e;u(e.message)}}var q=(s,t)=>m.send("PUT",`${D(s)}/place`,t).then(e=>p.take(e));function Ke(s){let t=p.get(s);t?.marked_unread&&y("",()=>q(t,{marked_unread:!1}))}var xt=s=>s.participants.find(({kind:t,id:e})=>t==="user"&&String(e)===x.id);async function ne(s){let t=xt(s);!t||!confirm(c(a("Leave %(name)s? You will no longer see its messages."),{name:p.nameOf(s)}))||await y(a("You left the chat."),async()=>{await m.send("DELETE",`${D(s)}/participants/${t.participant_id}`),dispatchEvent(new CustomEvent("left-chat",{detail:s.id})),await p.refresh()})}async function ae(s){confirm(c(a("Delete %(name)s for everyone? Its messages and files can't be recovered."),{name:p.nameOf(s)}))&&await y(a("Chat deleted."),async()=>{await m.send("DELETE",D(s)),dispatchEvent(new CustomEvent("left-chat",{detail:s.id})),await p.refresh()})}var Ye=[{name:"pin-chat",icon:"pin",label:({pinned:s})=>s?a("Unpin"):a("Pin"),run:s=>y(s.pinned?a("Unpinned."):a("Pinned."),()=>q(s,{pinned:!s.pinned}))},{name:"mute-chat",icon:"muted",label:({muted:s})=>s?a("Unmute"):a("Mute"),run:s=>y(s.muted?a("Unmuted."):a("Muted."),()=>m.send("PUT",`${D(s)}/mute`,{muted:!s.muted}).then(t=>p.take(t)))},{name:"mark-unread",icon:"message",label:()=>a("Mark as unread"),isOffered:({unread:s,marked_unread:t})=>!s&&!t,run:s=>y(a("Marked as unread."),()=>q(s,{marked_unread:!0}))},{name:"archive-chat",icon:"down",label:({archived:s})=>s?a("Unarchive"):a("Archive"),run:s=>y(s.archived?a("Unarchived."):a("Archived."),()=>q(s,{archived:!s.archived}))},{name:"verify-chat",icon:"seal",label:()=>a("Verify…"),isOffered:({home:s})=>!s,run:(s,t)=>t.dispatchEvent(new CustomEvent("verify-chat",{bubbles:!0,detail:s}))},{name:"leave-chat",icon:"back",label:()=>a("Leave…"),isDangerous:!0,run:ne},{name:"delete-chat",icon:"bin",label:()=>a("Delete for everyone…"),isDangerous:!0,isOffered:s=>xt(s)?.role==="owner",run:ae}];function Ve(s){if(s.archived)return"archived";if(s.pinned)return"pinned";let t=p.others(s);return t.length>0&&t.every(({kind:e})=>e==="agent")?"agents":!s.title&&t.length===1?"people":"groups"}function $t(s,t){s.addEventListener("pay",e=>Et(t,e.detail.payment)),s.addEventListener("pay-always",e=>oe(t,e.target,e.detail)),s.addEventListener("pay-cancel",e=>t.session()?.cancel(e.detail.payment.responseId))}function Et({session:s,say:t},e){let i=s();if(!i)return;let n=i.payments.list.find(({key:o})=>o===e.key);!n||n.state==="sent"||(i.pay(n),i.ready||t(a("You're offline. The payment will be sent once you're back online.")))}async function oe(s,t,{payment:e,upTo:i}){if(e.state!=="sent"){if(/^\d+(\.\d+)?$/.test(i)&&H(i)<H(e.amount)){t.say(c(a("%(agent)s asks for %(amount)s now: allow at least that, or pay once."),{agent:e.agent,amount:C(e.amount,e.currency)}));return}try{let n=`/api/payments/approvals/${encodeURIComponent(e.agent)}`;await m.send("PUT",n,{up_to:i,currency:e.currency})}catch(n){if(!g(n))throw n;t.say(n.message);return}Et(s,e)}}var St=class{constructor(t,e,i=E){this._page=i,this._session=null,$t(t,{session:()=>this._session,say:e})}listen(t,e,i){this._session=t;let n=Date.now(),o=({sender_id:h})=>e()?.participants.some(l=>l.kind==="agent"&&l.id===h&&l.pricing)??!1,r=new ft(h=>h.at<n||o(h),this._page);t.addEventListener("payments",h=>this._changed(h.detail),{signal:i}),t.addEventListener("response-end",h=>{let l=h.detail;l.thread===this._page.state.thread&&r.ended(l)},{signal:i}),document.addEventListener("visibilitychange",()=>document.hidden||r.refresh(),{signal:i}),addEventListener("focus",()=>r.refresh(),{signal:i}),i.addEventListener("abort",()=>r.close()),this._changed(null)}_changed(t){let e=this._session;if(!e)return;let i=({responseId:o})=>e.responses.get(o)?.thread||"",n=({responseId:o})=>rt.active?.agents.isAnswer(o);this._page.dispatch({type:"payments",list:e.payments.list.filter(o=>!n(o)).map(o=>({...o,thread:i(o)}))}),!(!t||n(t)||i(t)!==this._page.state.thread)&&u(c(t.isTopUp?a("%(agent)s asks for %(amount)s to continue. Pay or cancel at the end of the chat."):a("%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat."),{agent:t.agent,amount:C(t.amount,t.currency)}))}};function ds({participants:s},{userId:t}){let e=s.find(i=>i.kind==="user"&&String(i.id)===x.id);return!t||t===x.id||e?.role==="owner"}function ps(s,{approval:{key:t},approved:e,reason:i},n){let o=s.approvals.list.find(r=>r.key===t);o&&!s.decide(o,e,i)&&n(a("You're offline. Try again when you're back online."))}var Ot=500,At={completed:a("%(agent)s answered: %(text)s"),cancelled:a("%(agent)s: answer stopped"),failed:a("%(agent)s: answer failed")},re={...At,cancelled:a("%(agent)s: answer stopped by %(reason)s"),failed:a("%(agent)s: answer failed. %(reason)s")},Ct=class{constructor(){this._said=new Set}message({name:t,content:e}){u(c(a("%(name)s: %(text)s"),{name:et.nameOf(t),text:S(e,Ot)||a("sent a file")}))}answering({id:t,agent:e}){!e||this._said.has(t)||(this._said.add(t),u(c(a("%(name)s is answering"),{name:e})))}ended({id:t,agent:e,status:i,reason:n,parts:o}){if(!this._said.has(t))return;let r=o.map(l=>l.kind==="text"?l.text:"").join(`
`),h=S(r,Ot)||a("No text");u(c((n?re:At)[i],{agent:e||a("Agent"),reason:n??"",text:h}))}approvals(t,e){for(let i of t)i.state!=="closed"||this._said.has(i.key)||(this._said.add(i.key),u(pt(i)));e&&(this._said.delete(e.key),u(c(a("%(agent)s asks to use %(name)s. Allow or deny it at the end of the chat."),{agent:e.agent,name:e.name})))}};var O=50,ce=5e3,he=["agent.stopped","response.created","response.cancelled","response.error"],le=["agent.stopped","call.ended","chat.forked","link.created","link.revoked","participant.joined","participant.left","participant.updated","response.created","response.cancelled","response.error"],Tt=class{constructor(t,e,i={chat:async()=>{}}){this._store=t,this._api=e,this._kept=i,this.isKept=!1,this._place=0,this._refreshing=new Map}async load(t){let e=this._place+=1,{chatId:i}=this._store.state,{entries:n,hasMore:o,isKept:r=!1}=await this._newest(i);if(!this._isAt(i,e))return;this.isKept=r;let h=o?(n[0]?.seq??0)-1:0;this._store.dispatch({type:"page",entries:n,hasOlder:o,hasNewer:!1,failures:t}),this._showFacts(i,e,await this._facts(h,R(n)+O))}async _newest(t){try{return await this._page("order=desc")}catch(e){let i=L(e)&&e.status===0?await this._kept.chat(t):void 0;if(!i)throw e;return{entries:i.entries,hasMore:i.hasOlder,isKept:!0}}}async loadNewest(){this._store.state.hasNewer&&await this._show("order=desc",({hasMore:t})=>({hasOlder:t,hasNewer:!1}))}async loadAround(t){await this._show(`order=desc&around=${encodeURIComponent(t)}`,({entries:e,hasMore:i})=>{let n=typeof t=="number"?t:e.find(({id:r})=>r===t)?.seq??0,o=e.filter(({seq:r})=>r>n);return{hasOlder:i,hasNewer:o.length>=Math.floor(O/2)}})}async loadOlder(){let[t]=this._store.state.entries;await this._grow("older",`order=desc&before=${t.seq}`,({entries:e,hasMore:i})=>this._facts(i?e[0].seq-1:0,t.seq))}async loadNewer(){let t=R(this._store.state.entries);await this._grow("newer",`order=asc&after=${t}`,({entries:e,hasMore:i})=>this._facts(t,R(e)+(i?1:O)))}refresh(t){let e=this._refreshing.get(t)||this._refresh(t).finally(()=>this._refreshing.delete(t));return this._refreshing.set(t,e),e}async loadPins(){let{chatId:t}=this._store.state,{data:e}=await this._api.get(`/chats/${encodeURIComponent(t)}/pins?limit=100`);this._store.state.chatId===t&&this._store.dispatch({type:"pins",entries:e.map(i=>k(i))})}async withQuote(t){let e=t.reply_to;if(!e||e.content!==void 0)return t;let i=this._store.state.entries.find(({id:n})=>n===e.id);if(i)return{...t,reply_to:{id:i.id,name:i.name,content:i.content}};try{let{id:n,name:o,content:r}=await this._api.get(`/messages/${encodeURIComponent(e.id)}`);return{...t,reply_to:{id:n,name:o,content:r}}}catch(n){if(!L(n))throw n;return t}}async _refresh(t){let{chatId:e}=this._store.state,i=await this._api.get(`/messages/${encodeURIComponent(t)}?expand=signature`);this._store.state.chatId===e&&this._store.dispatch({type:"refreshed",entry:k(i)})}_isAt(t,e){return this._store.state.chatId===t&&this._place===e}async _page(t){let{chatId:e,thread:i}=this._store.state,n=await this._api.get(`/chats/${encodeURIComponent(e)}/messages?limit=${O}&expand=signature&thread=${i||"none"}&${t}`),o=n.data.map(l=>k(l)),r=t.startsWith("order=desc"),h=r?o.reverse():o;return i&&r&&!n.has_more&&h.unshift(k(await this._api.get(`/messages/${encodeURIComponent(i)}?expand=signature`))),{entries:h,hasMore:n.has_more}}async _show(t,e){let i=this._place+=1,{chatId:n}=this._store.state,o=await this._page(t),{entries:r}=o,{hasOlder:h,hasNewer:l}=e(o),w=await this._facts(h?(r[0]?.seq??1)-1:0,R(r)+(l?1:O));this._isAt(n,i)&&(this._store.dispatch({type:"place",entries:r,hasOlder:h,hasNewer:l}),this._showFacts(n,i,w))}async _grow(t,e,i){let{chatId:n}=this._store.state,o=this._place;this._store.dispatch({type:"loading",end:t});try{let r=await this._page(e),h=r.entries.length?await i(r):[];if(!this._isAt(n,o))return;let l=t==="older"?{hasOlder:r.hasMore}:{hasNewer:r.hasMore};this._store.dispatch({type:"page",entries:r.entries,...l}),this._showFacts(n,o,h)}catch(r){if(!L(r))throw r;this._isAt(n,o)&&this._store.dispatch({type:"load-failed",end:t})}}_showFacts(t,e,i){this._isAt(t,e)&&this._store.dispatch({type:"facts",events:i})}async _facts(t,e){let i=Math.max(0,t,e-ce),{chatId:n,thread:o}=this._store.state;try{let r=`/chats/${encodeURIComponent(n)}/events?types=${(o?he:le).join(",")}&after=${i}&before=${e}&order=desc&limit=200`;return(await this._api.get(r)).data.map(({seq:l,type:w,payload:z})=>({...z,seq:l,type:w}))}catch(r){if(!L(r))throw r;return[]}}},L=s=>s instanceof Error&&s.name==="ApiError",R=s=>s.at(-1)?.seq??0,Mt=({approvals:s,responses:t})=>s.list.map(e=>({...e,thread:t.get(e.responseId)?.thread||""}));function ks(s,t,e){let i=()=>s.dispatch({type:"own",ids:t.ownResponses.map(({id:r})=>r)}),n=()=>s.dispatch({type:"works",list:Q(t)}),o={response:r=>{s.dispatch({type:"response",response:r}),i(),n()},"response-end":r=>{s.dispatch({type:"response-end",response:r,failures:t.failures}),i(),n()},approvals:()=>{s.dispatch({type:"approvals",list:Mt(t)}),n()},payments:n,act:r=>s.dispatch({type:"act",event:r}),fact:r=>s.dispatch({type:"facts",events:[r]}),participants:r=>s.dispatch({type:"facts",events:[r]}),turns:()=>s.dispatch({type:"turns",list:t.turns}),queue:r=>s.dispatch({type:"queue",list:r}),read:r=>s.dispatch({type:"thread-read",event:r}),state:({value:r,by:h})=>s.dispatch({type:"shared",shared:{value:r,by:h}})};for(let[r,h]of Object.entries(o))t.addEventListener(r,l=>h(l.detail),{signal:e})}function xs(s,t){t.noteOwn(s.state.entries);for(let e of t.responses.values())s.dispatch({type:"response",response:e});for(let e of t.broken.values())s.dispatch({type:"response-end",response:e,failures:t.failures});s.dispatch({type:"own",ids:t.ownResponses.map(({id:e})=>e)}),s.dispatch({type:"approvals",list:Mt(t)}),s.dispatch({type:"works",list:Q(t)}),s.dispatch({type:"turns",list:t.turns}),s.dispatch({type:"queue",list:t.queue}),s.dispatch({type:"shared",shared:{value:t.state.value,by:t.state.by}})}var N=s=>t=>(t.dispatchEvent(new CustomEvent(s,{bubbles:!0})),"");async function de(s){let{chatId:t}=E.state,e=s.replace(/^@/,"");if(!e)return a("Add the name of a person or an agent, for example /invite bob.");let i=await m.get("/agents"),n=(i.data||i).some(r=>r.name===e),{invitation:o}=await m.post(`/chats/${encodeURIComponent(t)}/participants`,{[n?"agent":"user"]:e});return o?c(a("%(name)s is invited."),{name:e}):(await p.reload(t),c(a("%(name)s is now in the chat."),{name:e}))}async function pe(){let{entries:s,replyTo:t}=E.state,e=t||s.findLast(({deletedAt:i})=>!i);return e?lt()?(await dt(e,!0),c(a("%(name)s's message is pinned."),{name:e.name})):a("Only owners can pin messages in this chat."):a("There's no message to pin yet.")}var K=[{name:"help",note:a("Shortcuts and commands"),run:N("show-shortcuts")},{name:"invite",note:a("Add a person or an agent"),argument:"name",run:(s,t)=>de(t)},{name:"members",note:a("Show or hide the members"),run:N("toggle-members")},{name:"new",note:a("Start a chat"),run:N("new-chat")},{name:"pin",note:a("Pin the quoted or newest message"),run:pe},{name:"search",note:a("Search your chats"),run:N("open-search")}];function It(s){let t=/^\/([a-z]+)(?:\s+([^\n]*))?$/.exec(s.trimEnd());if(!t)return null;let[,e,i=""]=t;return{name:e,argument:i.trim(),command:K.find(n=>n.name===e)}}async function Ut({name:s,argument:t,command:e},i){if(!e)return c(a("Unknown command /%(name)s. Type /help for a list, or start with a space to send it as text."),{name:s});try{return await e.run(i,t)}catch(n){if(!g(n))throw n;return n.message}}function ue(s){return s.status===413?c(a("Too large (max. %(size)s)."),{size:I(A.upload_bytes)}):s.status===0?a("Couldn't reach the server."):s.message}var me=({name:s})=>s.replace(/\.\w+$/,""),j=class{constructor(t,e){this._host=t,this._say=e,this._made=0,this._items=[],t.addController(this)}hostDisconnected(){this.clear()}get isEmpty(){return this._items.every(t=>t.error)}get isBusy(){return this._items.some(t=>!t.stored&&!t.error)}add(t){for(let e of t)e.size>A.upload_bytes?this._say(c(a("%(name)s is too large (max. %(size)s)."),{name:e.name,size:I(A.upload_bytes)})):e.size===0?this._say(c(a("%(name)s is empty. Choose another file."),{name:e.name})):this._upload(e)}take(){let t=this._items.flatMap(e=>e.stored??[]);return this.clear(),t}clear(){for(let t of this._items)this._release(t);this._items=[],this._host.requestUpdate()}template(){return d`<ul
      class="tray"
      aria-label=${a("Attachments")}
      ?hidden=${this._items.length===0}
    >
      ${ct(this._items,({key:t})=>t,t=>this._chip(t))}
    </ul>`}_chip(t){return t.sound?this._sound(t):this._file(t)}_sound(t){let{file:e,sound:i,error:n,stored:o,percent:r}=t;return d`<li
      class="tray-item tray-sound ${n?"is-failed":""}"
      data-testid="attachment"
    >
      <sound-player .src=${i} .name=${me(e)}></sound-player>
      ${n?d`<small>${c(a("Upload failed. %(error)s"),{error:n})}</small>`:_}${o||n?_:d`<progress
              class="upload"
              max="100"
              value=${r}
              aria-label=${c(a("Uploading %(name)s"),{name:e.name})}
            ></progress>`}
      <button
        type="button"
        class="icon-button"
        aria-label=${c(a("Remove %(name)s"),{name:e.name})}
        title=${c(a("Remove %(name)s"),{name:e.name})}
        @click=${()=>this._remove(t)}
      >
        ${f("close")}
      </button>
    </li>`}_file(t){let{file:e,preview:i,percent:n,stored:o,error:r}=t;return d`<li class="tray-item ${r?"is-failed":""}" data-testid="attachment">
      ${i?d`<img src=${i} alt="" @error=${()=>this._dropPreview(t)} />`:f("file")}
      <span class="file-text"
        ><span class="file-name">${e.name}</span
        ><small
          >${r?c(a("Upload failed. %(error)s"),{error:r}):I(e.size)}</small
        >
        ${o||r?_:d`<progress
                class="upload"
                max="100"
                value=${n}
                aria-label=${c(a("Uploading %(name)s"),{name:e.name})}
              ></progress>`}</span
      >
      <button
        type="button"
        class="icon-button"
        aria-label=${c(a("Remove %(name)s"),{name:e.name})}
        title=${c(a("Remove %(name)s"),{name:e.name})}
        @click=${()=>this._remove(t)}
      >
        ${f("close")}
      </button>
    </li>`}_dropPreview(t){URL.revokeObjectURL(t.preview),t.preview="",this._host.requestUpdate()}_dropSound(t){t.sound&&URL.revokeObjectURL(t.sound),t.sound=""}_upload(t){let e={key:this._made+=1,file:t,preview:t.type.startsWith("image/")?URL.createObjectURL(t):"",sound:t.type.startsWith("audio/")?URL.createObjectURL(t):"",percent:0,stored:null,error:"",abort:()=>{}},{done:i,abort:n}=m.upload(t,o=>{e.percent=Math.round(100*o),this._host.requestUpdate()});e.abort=n,this._items=[...this._items,e],this._host.requestUpdate(),this._finish(e,i)}async _finish(t,e){let{file:i}=t;try{let{content_id:n,url:o,filename:r,mime_type:h}=await e;t.stored={content_id:n,url:o,filename:r||i.name,mime_type:h},/^(audio|video)\//.test(h)||this._dropSound(t),u(c(a("%(name)s is attached."),{name:i.name}))}catch(n){if(n.name==="AbortError")return;if(!g(n))throw n;t.error=ue(n),u(c(a("Couldn't upload %(name)s. %(error)s"),{name:i.name,error:t.error}))}this._host.requestUpdate()}_remove(t){this._release(t),this._items=this._items.filter(e=>e!==t),this._host.requestUpdate()}_release(t){!t.stored&&!t.error&&t.abort();for(let e of[t.preview,t.sound])e&&URL.revokeObjectURL(e)}};var qt=()=>d`<label class="also-in-chat"
    ><input type="checkbox" data-testid="also-in-chat" />${a("Also send to the chat")}</label
  >`;function Dt(s){let t=s.querySelector(".also-in-chat input"),e=!!t?.checked;return t&&(t.checked=!1),e}var P=({name:s,label:t,icon:e,isHidden:i=!1,press:n})=>d`<button
    type="button"
    class="icon-button ${s}"
    aria-label=${t}
    title=${t}
    data-testid=${s}
    ?hidden=${i}
    @click=${n}
  >
    ${f(e)}
  </button>`;function Lt(s,t){let e=s.map(n=>n.agent||"agent").join(", "),i=e?c(a("Stop %(name)s"),{name:e}):a("Stop the answer");return P({name:"stop",label:i,icon:"stop",isHidden:!e,press:t})}var Rt=s=>d`<button
    type="submit"
    class="icon-button send"
    aria-label=${a("Send")}
    title=${a("Send")}
    data-testid="send"
    ?disabled=${!s}
  >
    ${f("send")}
  </button>`;function Nt(s,t,e){t.ondragover=i=>{i.dataTransfer?.types.includes("Files")&&(i.preventDefault(),s.classList.add("is-dropping"))},t.ondragleave=i=>{t.contains(i.relatedTarget)||s.classList.remove("is-dropping")},t.ondrop=i=>{s.classList.remove("is-dropping"),e(i)}}function jt(s,t){let e=n=>{let o=s();o.focus(),o.setRangeText(n,o.selectionStart,o.selectionEnd,"end"),t()},i=({currentTarget:n})=>n?.dispatchEvent(new CustomEvent("pick-emoji",{bubbles:!0,detail:e}));return d`<button
    type="button"
    class="icon-button emoji-button"
    aria-label=${a("Emoji")}
    title=${a("Emoji")}
    aria-haspopup="dialog"
    data-testid="emoji"
    @click=${i}
  >
    ${f("smile")}
  </button>`}function Pt({key:s,altKey:t,ctrlKey:e,metaKey:i,shiftKey:n},o){return s!=="Enter"?null:t&&o?"queue":e||i||T.values.send_key==="enter"&&!n?"send":null}function Bt({clipboardData:s},{value:t,selectionStart:e,selectionEnd:i}){let n=s?.getData("text/plain")??"";return t.length-(i-e)+n.length<=1e5?null:new File([n],"pasted-text.txt",{type:"text/plain"})}var Ft=40;function zt(s,t){if(t)return a("Reply");let e=s&&!matchMedia("(max-width: 519px)").matches?fe(p.nameOf(s)):"";return e?c(a("Message %(name)s"),{name:e}):a("Message")}function fe(s){let t=Array.from(s);return t.length>Ft?`${t.slice(0,Ft).join("")}…`:s}var _e=500;async function ge(s){let t=await m.get("/agents"),e=(t.data||t).find(o=>b(o.name)===s);if(e)return{kind:"agent",name:e.name};let n=(await m.get(`/users?q=${encodeURIComponent(s)}`)).data.find(o=>b(o.username)===s);return n?{kind:"user",name:n.username}:null}var Y=class extends M{static properties={chat:{attribute:!1},text:{attribute:!1},_found:{state:!0},_said:{state:!0}};constructor(){super(),this.chat=void 0,this._name=void 0,this._timer=0,this.text="",this._known=new Map,this._found=null,this._said="",this._onChats=()=>this.requestUpdate()}connectedCallback(){super.connectedCallback(),p.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),p.removeEventListener("change",this._onChats)}willUpdate(){let[t]=this.chat?it(this.text,this.chat.participants):[];t!==this._name&&(this._name=t,this._said="",this._found=null,clearTimeout(this._timer),t&&(this._timer=window.setTimeout(()=>this._ask(t),_e)))}render(){if(!this._found){let[i]=this.chat?nt(this.text,this.chat.participants):[];return d`<p
        class="mention-hint"
        role="status"
        data-testid=${i?"offline-hint":_}
        ?hidden=${!i}
      >
        ${i?c(a("%(name)s is offline and can't answer right now."),{name:i}):""}
      </p>`}let{name:t,who:e}=this._found;return d`<p class="mention-hint" role="status" data-testid="mention-hint">
      <span
        >${e?c(a("%(name)s isn't in this chat."),{name:e.name}):c(a("No agent or person is called @%(name)s."),{name:t})}
        ${this._said}</span
      >
      ${e?d`<button type="button" class="link" @click=${()=>this._add(e)}>
              ${f("add")}${c(a("Add %(name)s"),{name:e.name})}
            </button>`:""}
    </p>`}async _ask(t){let e=this._known.get(t)??ge(t);this._known.set(t,e);try{let i=await e;this._name===t&&(this._found={name:t,who:i})}catch(i){if(this._known.delete(t),!g(i))throw i}}async _add({kind:t,name:e}){if(!this.chat)return;let{id:i}=this.chat;try{await m.post(`/chats/${encodeURIComponent(i)}/participants`,{[t]:e}),await p.reload(i),u(c(a("%(name)s is now in the chat."),{name:e})),this.closest("chat-composer")?.querySelector("textarea")?.focus()}catch(n){if(!g(n))throw n;this._said=n.message}}};customElements.define("mention-hint",Y);function Ht(s){return(s?p.others(s):[]).toSorted((e,i)=>e.kind.localeCompare(i.kind)||e.name.localeCompare(i.name)).map(e=>({name:e.name,note:e.kind==="agent"?ut(e.pricing)||"agent":e.display_name||"person",picture:ht(e.name,e.kind)}))}var Wt=s=>[{label:a("Mention"),pattern:st,all:()=>Ht(s())},{label:a("Commands"),pattern:/^\/([a-z]*)$/,all:()=>K.map(({name:t,note:e})=>({name:t,note:e}))}];var we=8,B=class{constructor(t,e,i){this._host=t,this._textOf=e,this._sources=i,this._label="",this._from=0,this._found=[],this._active=0,this._of="",this._isDismissed=!1}get activeId(){return this._found.length?`${this._of}suggestion-${this._active}`:_}update(){this._isDismissed=!1;let t=this._textOf(),e=t.value.slice(0,t.selectionStart),i=this._found.length>0;this.close();for(let{label:n,pattern:o,all:r}of this._sources){let h=o.exec(e);if(!h)continue;let l=b(h[1]);this._label=n,this._from=e.length-h[1].length,this._found=r().filter(({name:w})=>b(w).startsWith(l)).slice(0,we);break}!i&&this._found.length&&u(c(X("%(n)s entry matches. Use the arrow keys.","%(n)s entries match. Use the arrow keys.",this._found.length),{n:this._found.length}))}refresh(){if(this._isDismissed||document.activeElement!==this._textOf())return;let t=this._found[this._active]?.name;this.update(),this._active=Math.max(0,this._found.findIndex(({name:e})=>e===t))}key(t){if(this._found.length===0)return!1;let e={ArrowDown:1,ArrowUp:-1}[t.key];if(e)this._active=(this._active+e+this._found.length)%this._found.length;else if(t.key==="Enter"||t.key==="Tab")this._choose(this._found[this._active]);else if(t.key==="Escape")this.close(),this._isDismissed=!0;else return!1;return this._host.requestUpdate(),!0}close(){this._found=[],this._active=0,this._host.requestUpdate()}template(t){return this._of=t,d`<ul
      class="mention-menu"
      id="${t}suggestions"
      role="listbox"
      aria-label=${this._label||a("Suggestions")}
      ?hidden=${this._found.length===0}
    >
      ${this._found.map((e,i)=>d`<li
            role="option"
            id="${t}suggestion-${i}"
            aria-selected=${String(i===this._active)}
            @mousedown=${n=>this._pressed(n,e)}
          >
            ${e.picture??_}<span>${e.name}</span><small>${e.note}</small>
          </li>`)}
    </ul>`}_pressed(t,e){t.preventDefault(),this._choose(e)}_choose({name:t}){let e=this._textOf();this.close(),e.setRangeText(`${t} `,this._from,e.selectionStart,"end"),e.dispatchEvent(new Event("input",{bubbles:!0}))}};var ye=5*6e4,ve=500,be=400,ke=100,xe=32e3,$e=["audio/webm","audio/mp4","audio/ogg"],Ee=.25,Qt="note",Kt=s=>`${Math.floor(s/6e4)}:${String(Math.floor(s/1e3)%60).padStart(2,"0")}`,F=class{constructor(t,e,i){this._host=t,this._say=e,this._done=i,this._recording=null,this._pressedAt=0,this._isOpening=!1,this._endsAtOnce=!1,this._skipsClick=!1,t.addController(this)}hostDisconnected(){this._stop(!1)}get isRecording(){return this._recording!==null}button(){if(!J()||!("MediaRecorder"in globalThis))return _;let t=this._recording?a("Finish recording"):a("Record a voice note");return d`<button
      type="button"
      class="icon-button record ${this._recording?"is-recording":""}"
      aria-label=${t}
      title=${c(a("%(what)s (click, or hold to talk)"),{what:t})}
      data-testid="record"
      @pointerdown=${e=>this._press(e)}
      @pointerup=${()=>this._release()}
      @click=${e=>this._click(e)}
    >
      ${f(this._recording?"check":"microphone")}
    </button>`}template(){let t=this._recording;return t?d`<div
      class="voice-strip"
      role="group"
      aria-label=${a("Voice note")}
      data-testid="recording"
    >
      <span class="voice-dot" aria-hidden="true"></span
      ><span class="voice-time">${Kt(Date.now()-t.since)}</span>
      <meter
        class="voice-level"
        min="0"
        max=${Ee}
        value=${t.levels.level(Qt)}
        aria-hidden="true"
      ></meter>
      <button
        type="button"
        class="button button-quiet"
        data-testid="cancel-recording"
        @click=${()=>this._cancel()}
      >
        ${a("Cancel")}
      </button>
    </div>`:_}escape(t){return t.key!=="Escape"||!this._recording?!1:(t.preventDefault(),this._cancel(),!0)}_press(t){t.button||this._recording||(this._pressedAt=Date.now(),t.currentTarget.setPointerCapture(t.pointerId),this._start())}_release(){this._pressedAt>0&&Date.now()-this._pressedAt>be&&(this._skipsClick=!0,this._recording?this._stop(!0):this._endsAtOnce=this._isOpening)}_click(t){let e=this._pressedAt>0&&t.detail>0;this._pressedAt=0;let i=this._skipsClick;this._skipsClick=!1,!(e||i)&&(this._recording?this._stop(!0):this._start())}async _start(){if(!this._isOpening){this._isOpening=!0,this._endsAtOnce=!1;try{let t=await tt();if(this._endsAtOnce||!this._host.isConnected){W(t),this._say(a("Hold the button while you speak, or click it to start and stop."));return}this._record(t)}catch(t){if(!(t instanceof Z))throw t;this._say(t.message)}finally{this._isOpening=!1}}}_record(t){let e=$e.find(h=>MediaRecorder.isTypeSupported(h))??"",i=new MediaRecorder(t,{mimeType:e,audioBitsPerSecond:xe}),n=new G(()=>{});n.watch(Qt,t);let o=window.setInterval(()=>this._look(),ke),r={recorder:i,stream:t,levels:n,pieces:[],since:Date.now(),timer:o,isKept:!1};i.ondataavailable=({data:h})=>r.pieces.push(h),i.onstop=()=>this._finished(r),i.start(),this._recording=r,u(a("Recording. Press Esc to cancel.")),this._host.requestUpdate()}_look(){this._recording&&Date.now()-this._recording.since>ye&&(this._stop(!0),this._say(a("Voice notes can be up to 5 minutes long. Your recording was attached."))),this._host.requestUpdate()}_cancel(){this._stop(!1),u(a("The recording was discarded.")),this._host.querySelector(".record")?.focus()}_stop(t){let e=this._recording;e&&(this._recording=null,this._pressedAt=0,e.isKept=t,e.recorder.stop(),clearInterval(e.timer),e.levels.close(),this._host.requestUpdate())}_finished({recorder:t,stream:e,pieces:i,since:n,isKept:o}){if(W(e),!o)return;let r=Date.now()-n;if(r<ve){this._say(a("Hold the button while you speak, or click it to start and stop."));return}let h=t.mimeType.split(";")[0],l=h.split("/")[1]||"webm";this._done(new File(i,`Voice note ${Kt(r).replace(":",".")}.${l}`,{type:h}))}};var Oe=6e3,V=class extends M{static properties={_chat:{state:!0},_own:{state:!0},_value:{state:!0},_note:{state:!0}};constructor(){super(),this._chat=void 0,this._session=null,this._isSentOnOpening=!1,this._own=[],this._value="",this._note="",this._noteTimer=0,this._files=new j(this,t=>this.say(t)),this._voice=new F(this,t=>this.say(t),t=>this._files.add([t])),this._suggestions=new B(this,()=>this._text,Wt(()=>this._chat)),this._onChats=()=>this._chatsChanged(),this._isQueued=!1,this._works=new at(this,()=>this._page,t=>t.works)}connectedCallback(){super.connectedCallback(),this._value=$.get(this._draft),p.addEventListener("change",this._onChats),Nt(this,this._view,t=>this._take(t,t.dataTransfer?.files))}disconnectedCallback(){super.disconnectedCallback(),clearTimeout(this._noteTimer),p.removeEventListener("change",this._onChats)}get _view(){return this.closest("thread-panel, chat-view")}get _page(){return ot(this)}get _draft(){let{chatId:t,thread:e}=this._page.state;return[this._chat?.id??t,e].filter(Boolean).join(" ")}get _text(){return this.querySelector("textarea")}render(){let t=this._value.trim()&&this._chat?mt(this._chat,this._value):"",e=this._value.trim()!==""||!this._files.isEmpty,{thread:i}=this._page.state,n=i?"thread-":"";return d` <p class="composer-note" role="status" ?hidden=${!this._note}>${this._note}</p>
      <form class="composer" @submit=${o=>this._submit(o)}>
        ${this._suggestions.template(n)}<reply-preview
        ></reply-preview>${this._voice.template()}${this._files.template()}
        <div class="composer-row">
          ${P({name:"attach",label:a("Attach files"),icon:"attach",press:()=>this._picker.click()})}
          <input
            type="file"
            multiple
            hidden
            tabindex="-1"
            data-testid="file-input"
            @change=${()=>this._picked()}
          />
          <textarea
            id="${n}composer-text"
            rows="1"
            dir="auto"
            data-testid="composer"
            aria-label=${i?a("Reply in the thread"):a("Message")}
            placeholder=${zt(this._chat,i)}
            enterkeyhint="send"
            autocomplete="off"
            maxlength=${1e5}
            aria-describedby="${n}price-line"
            aria-autocomplete="list"
            aria-controls="${n}suggestions"
            aria-activedescendant=${this._suggestions.activeId}
            @input=${()=>this._written()}
            @keydown=${o=>this._key(o)}
            @paste=${o=>this._pasted(o)}
            @blur=${()=>this._left()}
          ></textarea>
          ${jt(()=>this._text,()=>this._written())} ${this._voice.button()}
          ${Lt(this._own,()=>this.stopOwn())}
          ${P({name:"send-later",label:a("Queue (send when the answer is done)"),icon:"clock",isHidden:!this._mayQueue||!e,press:()=>this._queue()})}
          ${Rt(e)}
        </div>
      </form>
      ${i?qt():""}
      <mention-hint .chat=${this._chat} .text=${this._value}></mention-hint>
      <p class="price-line" id="${n}price-line" data-testid="price-line" ?hidden=${!t}>
        ${t}
      </p>
      <div class="drop-hint" aria-hidden="true">${a("Drop files to attach them")}</div>`}firstUpdated(){this._text.value=this._value}updated(){let t=this._text;t.style.height="auto",t.style.height=`${t.scrollHeight}px`}async open(t,e){this._chat=t,this._session=e,await this.updateComplete,this._isSentOnOpening&&(this._isSentOnOpening=!1,this.say(""),this.querySelector("form")?.requestSubmit());let i=document.activeElement===document.body||document.activeElement?.matches(".chat-item");matchMedia("(pointer: fine)").matches&&i&&this._text.focus()}focusText(){this._text.focus()}write(t){this._text.value.trim()||(this._text.value=t,this._written()),this._text.focus()}putBack(t){this._text.value=[t,this._text.value].filter(Boolean).join(`
`),this._written(),this._text.focus()}async showRunning(t){let e=this.querySelector(".stop"),i=e!==null&&document.activeElement===e;this._own=t,await this.updateComplete,i&&t.length===0&&this._text.focus()}say(t){clearTimeout(this._noteTimer),this._note=t,this._noteTimer=window.setTimeout(()=>{this._note=""},Oe)}stopOwn(){if(this._own.length===0)return!1;for(let t of this._own)this._session.cancel(t.id);return u(a("Stopping")),!0}get isEmpty(){return this._text.value===""&&this._files.isEmpty}get _picker(){return this.querySelector("input[type=file]")}chooseFiles(){this._picker.click()}_picked(){this._files.add(this._picker.files??[]),this._picker.value="",this._text.focus()}_take(t,e){e?.length&&(t.preventDefault(),this._files.add(e))}_pasted(t){let{clipboardData:e}=t;this._take(t,e?.files);let i=t.defaultPrevented?null:Bt(t,this._text);i&&(t.preventDefault(),this._files.add([i]),this.say(a("The pasted text is too long for a message, so it was attached as a file.")))}_left(){this._session?.typing(!1),this._suggestions.close()}_written(){let t=kt(this._text.value,this._text.selectionStart);t&&(this._text.value=t.text,this._text.setSelectionRange(t.caret,t.caret)),this._value=this._text.value,this._suggestions.update(),$.write(this._draft,this._value),T.values.typing_notices&&this._session?.typing(this._value.trim()!=="")}_key(t){if(t.isComposing||t.keyCode===229||this._voice.escape(t))return;if(this._suggestions.key(t)){t.preventDefault();return}let e=Pt(t,this._mayQueue);e&&(t.preventDefault(),e==="queue"?this._queue():this.querySelector("form")?.requestSubmit())}get _mayQueue(){return this._works.value.length>0&&!this._page.state.thread}_queue(){this._isQueued=!0,this.querySelector("form")?.requestSubmit(),this._isQueued=!1}_submit(t){t.preventDefault();let e=this._text.value.trim();if(!e&&this._files.isEmpty)return;if(!this._session){this._isSentOnOpening=!0,this.say(a("Loading the chat. Your message will be sent automatically."));return}let i=this._voice.isRecording?a("Finish the voice note before you send."):this._files.isBusy&&a("Wait for the upload to finish before you send.");if(i){this.say(i);return}let n=this._files.isEmpty?It(this._text.value):null;if(n){this._run(n);return}let{replyTo:o,thread:r}=this._page.state;this._session.send({text:e,attachments:this._files.take(),replyTo:o?.id,thread:r,alsoInChat:Dt(this),queue:this._isQueued}),o&&this._page.dispatch({type:"reply-to",entry:null}),this._clear(),this._view.querySelector("message-list").toBottom?.()}async _run(t){t.command&&this._clear();let e=await Ut(t,this);e&&this.say(e)}_clear(){this._text.value="",this._value="",this._suggestions.close(),$.set(this._draft,""),$.save(),this._session.typing(!1)}_chatsChanged(){this._chat&&(this._chat=p.get(this._chat.id)||this._chat),this._suggestions.refresh(),this.requestUpdate()}};customElements.define("chat-composer",V);export{Be as a,Ke as b,Ye as c,Ve as d,$t as e,St as f,ds as g,ps as h,Ct as i,Tt as j,ks as k,xs as l,K as m,Ae as n,U as o,qe as p,De as q,Zt as r,gt as s,Re as t,Ne as u,je as v};
