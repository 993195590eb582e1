import{$ as b,Ca as ht,D as v,H as et,J as st,Ja as lt,K as it,O as $,Oa as M,Sa as dt,U as nt,Ua as S,V as C,W as x,Xa as pt,Y as m,_ as H,aa as E,ab as ut,c as a,ca as at,cb as K,d as Y,da as p,e as h,ea as ot,g as z,ga as u,gb as mt,ha as f,ia as rt,k as A,m as g,ma as d,n as X,o as V,pa as T,q as J,qa as _,r as Z,ra as ct,s as B,u as tt}from"./chunk-QKPH2DAL.js";var Rt=(i,t)=>i.notifications||t.notifications;function Dt({quiet_from:i,quiet_until:t,time_zone:e},s){if(!i||!t)return!1;let n;try{let r=new Intl.DateTimeFormat("en-GB",{hour:"2-digit",minute:"2-digit",hourCycle:"h23",timeZone:e}).formatToParts(s),o=c=>r.find(l=>l.type===c)?.value??"00";n=`${o("hour")}:${o("minute")}`}catch{return!1}return i<t?i<=n&&n<t:n>=i||n<t}function _t(i,t,{isMention:e,at:s,isDirect:n,isFollowed:r=!1},o){if(i.muted||o.getTime()-s>6e5||Dt(t,o))return!1;let c=Rt(i,t);return c==="mentions"?n||e||r:c==="all"}function ue({muted:i,notifications:t,unread:e,unread_mentions:s=0}){let n=t==="none"?0:Math.min(s,e);if(!i)return{shown:e,counts:e>0,mentions:n};let r=n>0;return{shown:r?n:e,counts:r,mentions:n}}var Lt=160,gt="uamp.notifications.asked";function I(){return!("Notification"in window)||!navigator.locks?"unsupported":Notification.permission}async function we(){return I()==="default"&&await Notification.requestPermission(),Pt(),dispatchEvent(new Event("notification-permission")),I()}var ye=()=>I()==="default"&&!localStorage.getItem(gt);function Pt(){localStorage.setItem(gt,"1")}var ft=class{constructor(t,e,s,n){if(this._store=t,this._settings=e,this._me=s,this._people=n,this._isLeader=!1,this._chatId="",this._viewing=new AbortController,!!navigator.locks){navigator.locks.request(`uamp.notifier.${s.id}`,()=>(this._isLeader=!0,new Promise(()=>{})));for(let[r,o]of[[document,"visibilitychange"],[window,"focus"],[window,"blur"]])r.addEventListener(o,()=>this._look());t.addEventListener("arrived",({detail:r})=>this._arrived(r))}}show(t){this._chatId=t,this._look()}_lockOf(t){return`uamp.viewing.${this._me.id}.${t}`}_look(){if(!navigator.locks)return;this._viewing.abort(),this._viewing=new AbortController;let{signal:t}=this._viewing;if(!this._chatId||document.hidden||!document.hasFocus())return;let e=new Promise(s=>t.addEventListener("abort",s,{once:!0}));navigator.locks.request(this._lockOf(this._chatId),{mode:"shared",signal:t},()=>e).catch(()=>{})}async _arrived({chat:t,message:e}){if(!this._isLeader||I()!=="granted")return;let s=this._store.others(t),n={isMention:this._isMention(e),at:e.created_at,isDirect:s.length===1,isFollowed:!!e.is_followed};if(!_t(t,this._settings.values,n,new Date))return;let{held:r=[]}=await navigator.locks.query();r.some(({name:o})=>o===this._lockOf(t.id))||this._notify(t,e)}_isMention({mentions:t}){return!!t?.includes(this._me.id)}_notify(t,e){let{notification_text:s,notification_sound:n}=this._settings.values,r=this._store.nameOf(t),o=e.sender_kind==="agent"?e.name:this._people.nameOf(e.name),c=this._store.others(t).length===1,l=!!(e.thread&&!e.also_in_chat),w=s?l?h(a("%(name)s replied in a thread of %(chat)s"),{name:o,chat:r}):c?o:h("%(author)s · %(name)s",{author:o,name:r}):a("New message"),F=this._isMention(e)?a("You were mentioned"):l?a("New reply in a thread"):"",qt={body:s?S(e.content,Lt)||a("sent a file"):F,tag:l?`thread ${e.thread}`:`chat ${t.id}`,renotify:!0,silent:!n,icon:Nt()};try{let k=new Notification(w,qt);k.onclick=()=>{window.focus(),k.close(),dispatchEvent(new CustomEvent("open-message",{detail:{chatId:t.id,messageId:e.id,threadId:l?e.thread:""}}))}}catch(k){if(!(k instanceof TypeError))throw k}}};function Nt(){let i=document.querySelector('link[rel="icon"]');return i instanceof HTMLLinkElement?i.href:void 0}var jt=`
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
🖤 black_heart`,wt=jt.trim().split(`
`).map(i=>{let[t,...e]=i.split(" ");return{emoji:t,name:e[0],words:e.join(" ")}}),Ft=new Map(wt.flatMap(({emoji:i,words:t})=>t.split(" ").map(e=>[e,i])).reverse());function be(i){let t=i.trim().toLowerCase().replaceAll(":","").split(/[\s_]+/).filter(Boolean);return wt.filter(e=>t.every(s=>e.words.includes(s))||e.emoji===i.trim())}function yt(i,t){let e=/(?:^|[\s(])(:([a-z0-9_+-]{1,30}):)$/.exec(i.slice(0,t)),s=e&&Ft.get(e[2]);if(!s)return null;let n=t-e[1].length;return{text:i.slice(0,n)+s+i.slice(t),caret:n+s.length}}function $e(i,t){let e=t.getBoundingClientRect(),{offsetWidth:s,offsetHeight:n}=i,o=e.bottom+4+n<=innerHeight?e.bottom+4:e.top-4-n,l=getComputedStyle(t).direction==="rtl"?e.left:e.right-s;i.style.left=`${Math.max(4,Math.min(l,innerWidth-s-4))}px`,i.style.top=`${Math.max(4,Math.min(o,innerHeight-n-4))}px`}var q=({id:i})=>`/chats/${encodeURIComponent(i)}`;async function y(i,t){try{await t(),d(i)}catch(e){if(!g(e))throw e;d(e.message)}}var U=(i,t)=>m.send("PUT",`${q(i)}/place`,t).then(e=>p.take(e));function Ce(i){let t=p.get(i);t?.marked_unread&&y("",()=>U(t,{marked_unread:!1}))}var vt=i=>i.participants.find(({kind:t,id:e})=>t==="user"&&String(e)===x.id);async function zt(i){let t=vt(i);!t||!confirm(h(a("Leave %(name)s? You will no longer see its messages."),{name:p.nameOf(i)}))||await y(a("You left the chat."),async()=>{await m.send("DELETE",`${q(i)}/participants/${t.participant_id}`),dispatchEvent(new CustomEvent("left-chat",{detail:i.id})),await p.refresh()})}async function Bt(i){confirm(h(a("Delete %(name)s for everyone? Its messages and files cannot be recovered."),{name:p.nameOf(i)}))&&await y(a("Chat deleted."),async()=>{await m.send("DELETE",q(i)),dispatchEvent(new CustomEvent("left-chat",{detail:i.id})),await p.refresh()})}var Te=[{name:"pin-chat",icon:"pin",label:({pinned:i})=>i?a("Unpin"):a("Pin"),run:i=>y(i.pinned?a("Unpinned."):a("Pinned."),()=>U(i,{pinned:!i.pinned}))},{name:"mute-chat",icon:"muted",label:({muted:i})=>i?a("Unmute"):a("Mute"),run:i=>y(i.muted?a("Unmuted."):a("Muted."),()=>m.send("PUT",`${q(i)}/mute`,{muted:!i.muted}).then(t=>p.take(t)))},{name:"mark-unread",icon:"message",label:()=>a("Mark as unread"),isOffered:({unread:i,marked_unread:t})=>!i&&!t,run:i=>y(a("Marked as unread."),()=>U(i,{marked_unread:!0}))},{name:"archive-chat",icon:"down",label:({archived:i})=>i?a("Move to the chats"):a("Archive"),run:i=>y(i.archived?a("Moved to the chats."):a("Archived."),()=>U(i,{archived:!i.archived}))},{name:"leave-chat",icon:"back",label:()=>a("Leave…"),isDangerous:!0,run:zt},{name:"delete-chat",icon:"bin",label:()=>a("Delete for everyone…"),isDangerous:!0,isOffered:i=>vt(i)?.role==="owner",run:Bt}];function Me(i){if(i.archived)return"archived";if(i.pinned)return"pinned";let t=p.others(i);return t.length>0&&t.every(({kind:e})=>e==="agent")?"agents":!i.title&&t.length===1?"people":"groups"}function bt(i,t){i.addEventListener("pay",e=>kt(t,e.detail.payment)),i.addEventListener("pay-always",e=>Ht(t,e.target,e.detail)),i.addEventListener("pay-cancel",e=>t.session()?.cancel(e.detail.payment.responseId))}function kt({session:i,say:t},e){let s=i();if(!s)return;let n=s.payments.list.find(({key:r})=>r===e.key);!n||n.state==="sent"||(s.pay(n),s.ready||t(a("You're offline. The payment will be sent once you're back online.")))}async function Ht(i,t,{payment:e,upTo:s}){if(e.state!=="sent"){if(/^\d+(\.\d+)?$/.test(s)&&z(s)<z(e.amount)){t.say(h(a("%(agent)s asks for %(amount)s now: allow at least that, or pay once."),{agent:e.agent,amount:A(e.amount,e.currency)}));return}try{let n=`/api/payments/approvals/${encodeURIComponent(e.agent)}`;await m.send("PUT",n,{up_to:s,currency:e.currency})}catch(n){if(!g(n))throw n;t.say(n.message);return}kt(i,e)}}var $t=class{constructor(t,e,s=E){this._page=s,this._session=null,bt(t,{session:()=>this._session,say:e})}listen(t,e,s){this._session=t;let n=Date.now(),r=({sender_id:c})=>e()?.participants.some(l=>l.kind==="agent"&&l.id===c&&l.pricing)??!1,o=new mt(c=>c.at<n||r(c),this._page);t.addEventListener("payments",c=>this._changed(c.detail),{signal:s}),t.addEventListener("response-end",c=>{let l=c.detail;l.thread===this._page.state.thread&&o.ended(l)},{signal:s}),document.addEventListener("visibilitychange",()=>document.hidden||o.refresh(),{signal:s}),addEventListener("focus",()=>o.refresh(),{signal:s}),s.addEventListener("abort",()=>o.close()),this._changed(null)}_changed(t){let e=this._session;if(!e)return;let s=({responseId:r})=>e.responses.get(r)?.thread||"",n=({responseId:r})=>ot.active?.agents.isAnswer(r);this._page.dispatch({type:"payments",list:e.payments.list.filter(r=>!n(r)).map(r=>({...r,thread:s(r)}))}),!(!t||n(t)||s(t)!==this._page.state.thread)&&d(h(t.isTopUp?a("%(agent)s asks for %(amount)s to go on. Pay or cancel at the end of the chat."):a("%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat."),{agent:t.agent,amount:A(t.amount,t.currency)}))}};function We({participants:i},{userId:t}){let e=i.find(s=>s.kind==="user"&&String(s.id)===x.id);return!t||t===x.id||e?.role==="owner"}function Ge(i,{approval:{key:t},approved:e,reason:s},n){let r=i.approvals.list.find(o=>o.key===t);r&&!i.decide(r,e,s)&&n(a("You're offline. Try again when you're back online."))}var xt=500,St={completed:a("%(agent)s answered: %(text)s"),cancelled:a("%(agent)s: answer stopped"),failed:a("%(agent)s: answer failed")},Kt={...St,cancelled:a("%(agent)s: answer stopped by %(reason)s"),failed:a("%(agent)s: answer failed. %(reason)s")},Et=class{constructor(){this._said=new Set}message({name:t,content:e}){d(h(a("%(name)s: %(text)s"),{name:tt.nameOf(t),text:S(e,xt)||a("sent a file")}))}answering({id:t,agent:e}){!e||this._said.has(t)||(this._said.add(t),d(h(a("%(name)s is answering"),{name:e})))}ended({id:t,agent:e,status:s,reason:n,parts:r}){if(!this._said.has(t))return;let o=r.map(l=>l.kind==="text"?l.text:"").join(`
`),c=S(o,xt)||a("No text");d(h((n?Kt:St)[s],{agent:e||a("Agent"),reason:n??"",text:c}))}approvals(t,e){for(let s of t)s.state!=="closed"||this._said.has(s.key)||(this._said.add(s.key),d(dt(s)));e&&d(h(a("%(agent)s asks to use %(name)s. Allow or refuse it at the end of the chat."),{agent:e.agent,name:e.name}))}};var O=50,Qt=5e3,Wt=["agent.stopped","response.created","response.cancelled","response.error"],Gt=["agent.stopped","call.ended","chat.forked","link.created","link.revoked","participant.joined","participant.left","participant.updated","response.created","response.cancelled","response.error"],Ot=class{constructor(t,e,s={chat:async()=>{}}){this._store=t,this._api=e,this._kept=s,this.isKept=!1,this._place=0,this._refreshing=new Map}async load(t){let e=this._place+=1,{chatId:s}=this._store.state,{entries:n,hasMore:r,isKept:o=!1}=await this._newest(s);if(!this._isAt(s,e))return;this.isKept=o;let c=r?(n[0]?.seq??0)-1:0;this._store.dispatch({type:"page",entries:n,hasOlder:r,hasNewer:!1,failures:t}),this._showFacts(s,e,await this._facts(c,D(n)+O))}async _newest(t){try{return await this._page("order=desc")}catch(e){let s=R(e)&&e.status===0?await this._kept.chat(t):void 0;if(!s)throw e;return{entries:s.entries,hasMore:s.hasOlder,isKept:!0}}}async loadNewest(){this._store.state.hasNewer&&await this._show("order=desc",({hasMore:t})=>({hasOlder:t,hasNewer:!1}))}async loadAround(t){await this._show(`order=desc&around=${encodeURIComponent(t)}`,({entries:e,hasMore:s})=>{let n=typeof t=="number"?t:e.find(({id:o})=>o===t)?.seq??0,r=e.filter(({seq:o})=>o>n);return{hasOlder:s,hasNewer:r.length>=Math.floor(O/2)}})}async loadOlder(){let[t]=this._store.state.entries;await this._grow("older",`order=desc&before=${t.seq}`,({entries:e,hasMore:s})=>this._facts(s?e[0].seq-1:0,t.seq))}async loadNewer(){let t=D(this._store.state.entries);await this._grow("newer",`order=asc&after=${t}`,({entries:e,hasMore:s})=>this._facts(t,D(e)+(s?1:O)))}refresh(t){let e=this._refreshing.get(t)||this._refresh(t).finally(()=>this._refreshing.delete(t));return this._refreshing.set(t,e),e}async loadPins(){let{chatId:t}=this._store.state,{data:e}=await this._api.get(`/chats/${encodeURIComponent(t)}/pins?limit=100`);this._store.state.chatId===t&&this._store.dispatch({type:"pins",entries:e.map(s=>$(s))})}async withQuote(t){let e=t.reply_to;if(!e||e.content!==void 0)return t;let s=this._store.state.entries.find(({id:n})=>n===e.id);if(s)return{...t,reply_to:{id:s.id,name:s.name,content:s.content}};try{let{id:n,name:r,content:o}=await this._api.get(`/messages/${encodeURIComponent(e.id)}`);return{...t,reply_to:{id:n,name:r,content:o}}}catch(n){if(!R(n))throw n;return t}}async _refresh(t){let{chatId:e}=this._store.state,s=await this._api.get(`/messages/${encodeURIComponent(t)}?expand=signature`);this._store.state.chatId===e&&this._store.dispatch({type:"refreshed",entry:$(s)})}_isAt(t,e){return this._store.state.chatId===t&&this._place===e}async _page(t){let{chatId:e,thread:s}=this._store.state,n=await this._api.get(`/chats/${encodeURIComponent(e)}/messages?limit=${O}&expand=signature&thread=${s||"none"}&${t}`),r=n.data.map(l=>$(l)),o=t.startsWith("order=desc"),c=o?r.reverse():r;return s&&o&&!n.has_more&&c.unshift($(await this._api.get(`/messages/${encodeURIComponent(s)}?expand=signature`))),{entries:c,hasMore:n.has_more}}async _show(t,e){let s=this._place+=1,{chatId:n}=this._store.state,r=await this._page(t),{entries:o}=r,{hasOlder:c,hasNewer:l}=e(r),w=await this._facts(c?(o[0]?.seq??1)-1:0,D(o)+(l?1:O));this._isAt(n,s)&&(this._store.dispatch({type:"place",entries:o,hasOlder:c,hasNewer:l}),this._showFacts(n,s,w))}async _grow(t,e,s){let{chatId:n}=this._store.state,r=this._place;this._store.dispatch({type:"loading",end:t});try{let o=await this._page(e),c=o.entries.length?await s(o):[];if(!this._isAt(n,r))return;let l=t==="older"?{hasOlder:o.hasMore}:{hasNewer:o.hasMore};this._store.dispatch({type:"page",entries:o.entries,...l}),this._showFacts(n,r,c)}catch(o){if(!R(o))throw o;this._isAt(n,r)&&this._store.dispatch({type:"load-failed",end:t})}}_showFacts(t,e,s){this._isAt(t,e)&&this._store.dispatch({type:"facts",events:s})}async _facts(t,e){let s=Math.max(0,t,e-Qt),{chatId:n,thread:r}=this._store.state;try{let o=`/chats/${encodeURIComponent(n)}/events?types=${(r?Wt:Gt).join(",")}&after=${s}&before=${e}&order=desc&limit=200`;return(await this._api.get(o)).data.map(({seq:l,type:w,payload:F})=>({...F,seq:l,type:w}))}catch(o){if(!R(o))throw o;return[]}}},R=i=>i instanceof Error&&i.name==="ApiError",D=i=>i.at(-1)?.seq??0,At=({approvals:i,responses:t})=>i.list.map(e=>({...e,thread:t.get(e.responseId)?.thread||""}));function ns(i,t,e){let s=()=>i.dispatch({type:"own",ids:t.ownResponses.map(({id:o})=>o)}),n=()=>i.dispatch({type:"works",list:K(t)}),r={response:o=>{i.dispatch({type:"response",response:o}),s(),n()},"response-end":o=>{i.dispatch({type:"response-end",response:o,failures:t.failures}),s(),n()},approvals:()=>{i.dispatch({type:"approvals",list:At(t)}),n()},payments:n,act:o=>i.dispatch({type:"act",event:o}),fact:o=>i.dispatch({type:"facts",events:[o]}),participants:o=>i.dispatch({type:"facts",events:[o]}),turns:()=>i.dispatch({type:"turns",list:t.turns}),queue:o=>i.dispatch({type:"queue",list:o}),read:o=>i.dispatch({type:"thread-read",event:o}),state:({value:o,by:c})=>i.dispatch({type:"shared",shared:{value:o,by:c}})};for(let[o,c]of Object.entries(r))t.addEventListener(o,l=>c(l.detail),{signal:e})}function as(i,t){t.noteOwn(i.state.entries);for(let e of t.responses.values())i.dispatch({type:"response",response:e});for(let e of t.broken.values())i.dispatch({type:"response-end",response:e,failures:t.failures});i.dispatch({type:"own",ids:t.ownResponses.map(({id:e})=>e)}),i.dispatch({type:"approvals",list:At(t)}),i.dispatch({type:"works",list:K(t)}),i.dispatch({type:"turns",list:t.turns}),i.dispatch({type:"queue",list:t.queue}),i.dispatch({type:"shared",shared:{value:t.state.value,by:t.state.by}})}var L=i=>t=>(t.dispatchEvent(new CustomEvent(i,{bubbles:!0})),"");async function Yt(i){let{chatId:t}=E.state,e=i.replace(/^@/,"");if(!e)return a("Name a person or an agent: /invite bob.");let s=await m.get("/agents"),n=(s.data||s).some(o=>o.name===e),{invitation:r}=await m.post(`/chats/${encodeURIComponent(t)}/participants`,{[n?"agent":"user"]:e});return r?h(a("%(name)s is invited."),{name:e}):(await p.reload(t),h(a("%(name)s is in the chat now."),{name:e}))}async function Xt(){let{entries:i,replyTo:t}=E.state,e=t||i.findLast(({deletedAt:s})=>!s);return e?ht()?(await lt(e,!0),h(a("The message of %(name)s is pinned."),{name:e.name})):a("Only owners can pin messages in this chat."):a("There's no message to pin yet.")}var Q=[{name:"help",note:a("Shortcuts and commands"),run:L("show-shortcuts")},{name:"invite",note:a("Add a person or an agent"),argument:"name",run:(i,t)=>Yt(t)},{name:"members",note:a("Show or hide the members"),run:L("toggle-members")},{name:"new",note:a("Start a chat"),run:L("new-chat")},{name:"pin",note:a("Pin the quoted or newest message"),run:Xt},{name:"search",note:a("Search your chats"),run:L("open-search")}];function Ct(i){let t=/^\/([a-z]+)(?:\s+([^\n]*))?$/.exec(i.trimEnd());if(!t)return null;let[,e,s=""]=t;return{name:e,argument:s.trim(),command:Q.find(n=>n.name===e)}}function Vt(i){return i.status===413?h(a("Too large (max. %(size)s)."),{size:M(C.upload_bytes)}):i.status===0?a("Couldn't reach the server."):i.message}var Jt=({name:i})=>i.replace(/\.\w+$/,""),P=class{constructor(t,e){this._host=t,this._say=e,this._made=0,this._items=[],t.addController(this)}hostDisconnected(){this.clear()}get isEmpty(){return this._items.every(t=>t.error)}get isBusy(){return this._items.some(t=>!t.stored&&!t.error)}add(t){for(let e of t)e.size>C.upload_bytes?this._say(h(a("%(name)s is too large (max. %(size)s)."),{name:e.name,size:M(C.upload_bytes)})):e.size===0?this._say(h(a("%(name)s is empty. Choose another file."),{name:e.name})):this._upload(e)}take(){let t=this._items.flatMap(e=>e.stored??[]);return this.clear(),t}clear(){for(let t of this._items)this._release(t);this._items=[],this._host.requestUpdate()}template(){return u`<ul class="tray" aria-label=${a("Attachments")} ?hidden=${this._items.length===0}>${rt(this._items,({key:t})=>t,t=>this._chip(t))}</ul>`}_chip(t){return t.sound?this._sound(t):this._file(t)}_sound(t){let{file:e,sound:s,error:n,stored:r,percent:o}=t;return u`<li class="tray-item tray-sound ${n?"is-failed":""}" data-testid="attachment"><sound-player .src=${s} .name=${Jt(e)}></sound-player>
      ${n?u`<small>${h(a("Upload failed. %(error)s"),{error:n})}</small>`:f}${r||n?f:u`<progress class="upload" max="100" value=${o} aria-label=${h(a("Uploading %(name)s"),{name:e.name})}></progress>`}
      <button type="button" class="icon-button" aria-label=${h(a("Remove %(name)s"),{name:e.name})} title=${h(a("Remove %(name)s"),{name:e.name})} @click=${()=>this._remove(t)}>${_("close")}</button>
    </li>`}_file(t){let{file:e,preview:s,percent:n,stored:r,error:o}=t;return u`<li class="tray-item ${o?"is-failed":""}" data-testid="attachment">
      ${s?u`<img src=${s} alt="" @error=${()=>this._dropPreview(t)}>`:_("file")}
      <span class="file-text"><span class="file-name">${e.name}</span><small>${o?h(a("Upload failed. %(error)s"),{error:o}):M(e.size)}</small>
        ${r||o?f:u`<progress class="upload" max="100" value=${n} aria-label=${h(a("Uploading %(name)s"),{name:e.name})}></progress>`}</span>
      <button type="button" class="icon-button" aria-label=${h(a("Remove %(name)s"),{name:e.name})} title=${h(a("Remove %(name)s"),{name:e.name})} @click=${()=>this._remove(t)}>${_("close")}</button>
    </li>`}_dropPreview(t){URL.revokeObjectURL(t.preview),t.preview="",this._host.requestUpdate()}_dropSound(t){t.sound&&URL.revokeObjectURL(t.sound),t.sound=""}_upload(t){let e={key:this._made+=1,file:t,preview:t.type.startsWith("image/")?URL.createObjectURL(t):"",sound:t.type.startsWith("audio/")?URL.createObjectURL(t):"",percent:0,stored:null,error:"",abort:()=>{}},{done:s,abort:n}=m.upload(t,r=>{e.percent=Math.round(100*r),this._host.requestUpdate()});e.abort=n,this._items=[...this._items,e],this._host.requestUpdate(),this._finish(e,s)}async _finish(t,e){let{file:s}=t;try{let{content_id:n,url:r,filename:o,mime_type:c}=await e;t.stored={content_id:n,url:r,filename:o||s.name,mime_type:c},/^(audio|video)\//.test(c)||this._dropSound(t),d(h(a("%(name)s is attached."),{name:s.name}))}catch(n){if(n.name==="AbortError")return;if(!g(n))throw n;t.error=Vt(n),d(h(a("Couldn't upload %(name)s. %(error)s"),{name:s.name,error:t.error}))}this._host.requestUpdate()}_remove(t){this._release(t),this._items=this._items.filter(e=>e!==t),this._host.requestUpdate()}_release(t){!t.stored&&!t.error&&t.abort();for(let e of[t.preview,t.sound])e&&URL.revokeObjectURL(e)}};var Zt=500;async function te(i){let t=await m.get("/agents"),e=(t.data||t).find(r=>v(r.name)===i);if(e)return{kind:"agent",name:e.name};let n=(await m.get(`/users?q=${encodeURIComponent(i)}`)).data.find(r=>v(r.username)===i);return n?{kind:"user",name:n.username}:null}var W=class extends T{static properties={chat:{attribute:!1},text:{attribute:!1},_found:{state:!0},_said:{state:!0}};constructor(){super(),this.chat=void 0,this._name=void 0,this._timer=0,this.text="",this._known=new Map,this._found=null,this._said="",this._onChats=()=>this.requestUpdate()}connectedCallback(){super.connectedCallback(),p.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),p.removeEventListener("change",this._onChats)}willUpdate(){let[t]=this.chat?st(this.text,this.chat.participants):[];t!==this._name&&(this._name=t,this._said="",this._found=null,clearTimeout(this._timer),t&&(this._timer=window.setTimeout(()=>this._ask(t),Zt)))}render(){if(!this._found){let[s]=this.chat?it(this.text,this.chat.participants):[];return u`<p class="mention-hint" role="status" data-testid=${s?"offline-hint":f} ?hidden=${!s}>${s?h(a("%(name)s is offline and does not answer now."),{name:s}):""}</p>`}let{name:t,who:e}=this._found;return u`<p class="mention-hint" role="status" data-testid="mention-hint">
      <span>${e?h(a("%(name)s is not in this chat."),{name:e.name}):h(a("No agent or person is called @%(name)s."),{name:t})} ${this._said}</span>
      ${e?u`<button type="button" class="link" @click=${()=>this._add(e)}>${_("add")}${h(a("Add %(name)s"),{name:e.name})}</button>`:""}
    </p>`}async _ask(t){let e=this._known.get(t)??te(t);this._known.set(t,e);try{let s=await e;this._name===t&&(this._found={name:t,who:s})}catch(s){if(this._known.delete(t),!g(s))throw s}}async _add({kind:t,name:e}){if(!this.chat)return;let{id:s}=this.chat;try{await m.post(`/chats/${encodeURIComponent(s)}/participants`,{[t]:e}),await p.reload(s),d(h(a("%(name)s is in the chat now."),{name:e})),this.closest("chat-composer")?.querySelector("textarea")?.focus()}catch(n){if(!g(n))throw n;this._said=n.message}}};customElements.define("mention-hint",W);var ee=8,N=class{constructor(t,e,s){this._host=t,this._textOf=e,this._sources=s,this._label="",this._from=0,this._found=[],this._active=0,this._of="",this._isDismissed=!1}get activeId(){return this._found.length?`${this._of}suggestion-${this._active}`:f}update(){this._isDismissed=!1;let t=this._textOf(),e=t.value.slice(0,t.selectionStart),s=this._found.length>0;this.close();for(let{label:n,pattern:r,all:o}of this._sources){let c=r.exec(e);if(!c)continue;let l=v(c[1]);this._label=n,this._from=e.length-c[1].length,this._found=o().filter(({name:w})=>v(w).startsWith(l)).slice(0,ee);break}!s&&this._found.length&&d(h(Y("%(n)s entry matches. Use the arrow keys.","%(n)s entries match. Use the arrow keys.",this._found.length),{n:this._found.length}))}refresh(){if(this._isDismissed||document.activeElement!==this._textOf())return;let t=this._found[this._active]?.name;this.update(),this._active=Math.max(0,this._found.findIndex(({name:e})=>e===t))}key(t){if(this._found.length===0)return!1;let e={ArrowDown:1,ArrowUp:-1}[t.key];if(e)this._active=(this._active+e+this._found.length)%this._found.length;else if(t.key==="Enter"||t.key==="Tab")this._choose(this._found[this._active]);else if(t.key==="Escape")this.close(),this._isDismissed=!0;else return!1;return this._host.requestUpdate(),!0}close(){this._found=[],this._active=0,this._host.requestUpdate()}template(t){return this._of=t,u`<ul class="mention-menu" id="${t}suggestions" role="listbox" aria-label=${this._label||a("Suggestions")} ?hidden=${this._found.length===0}>${this._found.map((e,s)=>u`<li role="option" id="${t}suggestion-${s}" aria-selected=${String(s===this._active)}
        @mousedown=${n=>this._pressed(n,e)}>${e.picture??f}<span>${e.name}</span><small>${e.note}</small></li>`)}</ul>`}_pressed(t,e){t.preventDefault(),this._choose(e)}_choose({name:t}){let e=this._textOf();this.close(),e.setRangeText(`${t} `,this._from,e.selectionStart,"end"),e.dispatchEvent(new Event("input",{bubbles:!0}))}};var se=5*6e4,ie=500,ne=400,ae=100,oe=32e3,re=["audio/webm","audio/mp4","audio/ogg"],ce=.25,Tt="note",Mt=i=>`${Math.floor(i/6e4)}:${String(Math.floor(i/1e3)%60).padStart(2,"0")}`,j=class{constructor(t,e,s){this._host=t,this._say=e,this._done=s,this._recording=null,this._pressedAt=0,this._isOpening=!1,this._endsAtOnce=!1,this._skipsClick=!1,t.addController(this)}hostDisconnected(){this._stop(!1)}get isRecording(){return this._recording!==null}button(){if(!V()||!("MediaRecorder"in globalThis))return f;let t=this._recording?a("Finish recording"):a("Record a voice note");return u`<button type="button" class="icon-button record ${this._recording?"is-recording":""}" aria-label=${t} title=${h(a("%(what)s (click, or hold to talk)"),{what:t})} data-testid="record"
      @pointerdown=${e=>this._press(e)} @pointerup=${()=>this._release()} @click=${e=>this._click(e)}>${_(this._recording?"check":"microphone")}</button>`}template(){let t=this._recording;return t?u`<div class="voice-strip" role="group" aria-label=${a("Voice note")} data-testid="recording">
      <span class="voice-dot" aria-hidden="true"></span><span class="voice-time">${Mt(Date.now()-t.since)}</span>
      <meter class="voice-level" min="0" max=${ce} value=${t.levels.level(Tt)} aria-hidden="true"></meter>
      <button type="button" class="button button-quiet" data-testid="cancel-recording" @click=${()=>this._cancel()}>${a("Cancel")}</button></div>`:f}escape(t){return t.key!=="Escape"||!this._recording?!1:(t.preventDefault(),this._cancel(),!0)}_press(t){t.button||this._recording||(this._pressedAt=Date.now(),t.currentTarget.setPointerCapture(t.pointerId),this._start())}_release(){this._pressedAt>0&&Date.now()-this._pressedAt>ne&&(this._skipsClick=!0,this._recording?this._stop(!0):this._endsAtOnce=this._isOpening)}_click(t){let e=this._pressedAt>0&&t.detail>0;this._pressedAt=0;let s=this._skipsClick;this._skipsClick=!1,!(e||s)&&(this._recording?this._stop(!0):this._start())}async _start(){if(!this._isOpening){this._isOpening=!0,this._endsAtOnce=!1;try{let t=await Z();if(this._endsAtOnce||!this._host.isConnected){B(t),this._say(a("Hold the button while you speak, or click it to start and stop."));return}this._record(t)}catch(t){if(!(t instanceof J))throw t;this._say(t.message)}finally{this._isOpening=!1}}}_record(t){let e=re.find(c=>MediaRecorder.isTypeSupported(c))??"",s=new MediaRecorder(t,{mimeType:e,audioBitsPerSecond:oe}),n=new X(()=>{});n.watch(Tt,t);let r=window.setInterval(()=>this._look(),ae),o={recorder:s,stream:t,levels:n,pieces:[],since:Date.now(),timer:r,isKept:!1};s.ondataavailable=({data:c})=>o.pieces.push(c),s.onstop=()=>this._finished(o),s.start(),this._recording=o,d(a("Recording. Press Escape to cancel.")),this._host.requestUpdate()}_look(){this._recording&&Date.now()-this._recording.since>se&&(this._stop(!0),this._say(a("Voice notes can be up to 5 minutes long. Your recording was attached."))),this._host.requestUpdate()}_cancel(){this._stop(!1),d(a("The recording was discarded.")),this._host.querySelector(".record")?.focus()}_stop(t){let e=this._recording;e&&(this._recording=null,this._pressedAt=0,e.isKept=t,e.recorder.stop(),clearInterval(e.timer),e.levels.close(),this._host.requestUpdate())}_finished({recorder:t,stream:e,pieces:s,since:n,isKept:r}){if(B(e),!r)return;let o=Date.now()-n;if(o<ie){this._say(a("Hold the button while you speak, or click it to start and stop."));return}let c=t.mimeType.split(";")[0],l=c.split("/")[1]||"webm";this._done(new File(s,`Voice note ${Mt(o).replace(":",".")}.${l}`,{type:c}))}};var he=6e3,It=1e5,Ut=40,le=400;function de(i){let t=Array.from(i);return t.length>Ut?`${t.slice(0,Ut).join("")}…`:i}var G=class extends T{static properties={_chat:{state:!0},_own:{state:!0},_value:{state:!0},_note:{state:!0}};constructor(){super(),this._chat=void 0,this._session=null,this._isSentOnOpening=!1,this._own=[],this._value="",this._note="",this._noteTimer=0,this._saveTimer=0,this._files=new P(this,t=>this.say(t)),this._voice=new j(this,t=>this.say(t),t=>this._files.add([t])),this._suggestions=new N(this,()=>this._text,[{label:a("Mention"),pattern:et,all:()=>this._mentionable()},{label:a("Commands"),pattern:/^\/([a-z]*)$/,all:()=>Q.map(({name:t,note:e})=>({name:t,note:e}))}]),this._onChats=()=>this._chatsChanged(),this._isQueued=!1,this._works=new nt(this,()=>this._page,t=>t.works)}connectedCallback(){super.connectedCallback(),p.addEventListener("change",this._onChats);let t=this._view;t.ondragover=e=>{e.dataTransfer?.types.includes("Files")&&(e.preventDefault(),this.classList.add("is-dropping"))},t.ondragleave=e=>{t.contains(e.relatedTarget)||this.classList.remove("is-dropping")},t.ondrop=e=>{this.classList.remove("is-dropping"),this._take(e,e.dataTransfer?.files)}}disconnectedCallback(){super.disconnectedCallback(),clearTimeout(this._noteTimer),p.removeEventListener("change",this._onChats)}get _view(){return this.closest("thread-panel, chat-view")}get _page(){return at(this)}_draftOf({id:t}){return[t,this._page.state.thread].filter(Boolean).join(" ")}get _text(){return this.querySelector("textarea")}render(){let t=this._value.trim()&&this._chat?ut(this._chat,this._value):"",e=this._value.trim()!==""||!this._files.isEmpty,s=this._own.map(l=>l.agent||"agent").join(", "),n=s?h(a("Stop %(name)s"),{name:s}):a("Stop the answer"),{thread:r}=this._page.state,o=r?"thread-":"",c=this._chat&&!matchMedia("(max-width: 519px)").matches?de(p.nameOf(this._chat)):"";return u`
      <p class="composer-note" role="status" ?hidden=${!this._note}>${this._note}</p>
      <form class="composer" @submit=${l=>this._submit(l)}>
        ${this._suggestions.template(o)}<reply-preview></reply-preview>${this._voice.template()}${this._files.template()}
        <div class="composer-row">
          <button type="button" class="icon-button" aria-label=${a("Attach files")} title=${a("Attach files")} data-testid="attach" @click=${()=>this._picker.click()}>${_("attach")}</button>
          <input type="file" multiple hidden tabindex="-1" data-testid="file-input" @change=${()=>this._picked()}>
          <textarea id="${o}composer-text" rows="1" dir="auto" data-testid="composer" aria-label=${r?a("Reply in the thread"):a("Message")} placeholder=${r?a("Reply"):c?h(a("Message %(name)s"),{name:c}):a("Message")}
            enterkeyhint="send" autocomplete="off" maxlength=${It} aria-describedby="${o}price-line" aria-autocomplete="list" aria-controls="${o}suggestions"
            aria-activedescendant=${this._suggestions.activeId} @input=${()=>this._written()} @keydown=${l=>this._key(l)}
            @paste=${l=>this._pasted(l)} @blur=${()=>this._left()}></textarea>
          <button type="button" class="icon-button emoji-button" aria-label=${a("Emoji")} title=${a("Emoji")} aria-haspopup="dialog" data-testid="emoji" @click=${l=>this._pickEmoji(l)}>${_("smile")}</button>
          ${this._voice.button()}
          <button type="button" class="icon-button stop" aria-label=${n} title=${n} data-testid="stop" ?hidden=${!s} @click=${()=>this.stopOwn()}>${_("stop")}</button>
          <button type="button" class="icon-button send-later" aria-label=${a("Queue (send when the answer is done)")} title=${a("Queue (send when the answer is done)")} data-testid="send-later" ?hidden=${!this._mayQueue||!e} @click=${()=>this._queue()}>${_("clock")}</button>
          <button type="submit" class="icon-button send" aria-label=${a("Send")} title=${a("Send")} data-testid="send" ?disabled=${!e}>${_("send")}</button>
        </div>
      </form>
      ${r?u`<label class="also-in-chat"><input type="checkbox" data-testid="also-in-chat">${a("Also send to the chat")}</label>`:""}
      <mention-hint .chat=${this._chat} .text=${this._value}></mention-hint>
      <p class="price-line" id="${o}price-line" data-testid="price-line" ?hidden=${!t}>${t}</p>
      <div class="drop-hint" aria-hidden="true">${a("Drop files to attach them")}</div>`}updated(){let t=this._text;t.style.height="auto",t.style.height=`${t.scrollHeight}px`}async open(t,e){this._chat=t,this._session=e,await this.updateComplete,this._text.value||=b.get(this._draftOf(t)),this._value=this._text.value,this._isSentOnOpening&&(this._isSentOnOpening=!1,this.say(""),this.querySelector("form")?.requestSubmit());let s=document.activeElement===document.body||document.activeElement?.matches(".chat-item");matchMedia("(pointer: fine)").matches&&s&&this._text.focus()}focusText(){this._text.focus()}write(t){this._text.value.trim()||(this._text.value=t,this._written()),this._text.focus()}async showRunning(t){let e=this.querySelector(".stop"),s=e!==null&&document.activeElement===e;this._own=t,await this.updateComplete,s&&t.length===0&&this._text.focus()}say(t){clearTimeout(this._noteTimer),this._note=t,this._noteTimer=window.setTimeout(()=>{this._note=""},he)}stopOwn(){if(this._own.length===0)return!1;for(let t of this._own)this._session.cancel(t.id);return d(a("Stopping")),!0}get isEmpty(){return this._text.value===""&&this._files.isEmpty}get _alsoInChat(){return this.querySelector(".also-in-chat input")}get _picker(){return this.querySelector("input[type=file]")}chooseFiles(){this._picker.click()}_picked(){this._files.add(this._picker.files??[]),this._picker.value="",this._text.focus()}_mentionable(){return(this._chat?p.others(this._chat):[]).toSorted((e,s)=>e.kind.localeCompare(s.kind)||e.name.localeCompare(s.name)).map(e=>({name:e.name,note:e.kind==="agent"?pt(e.pricing)||"agent":e.display_name||"person",picture:ct(e.name,e.kind)}))}_take(t,e){e?.length&&(t.preventDefault(),this._files.add(e))}_pasted(t){let{clipboardData:e}=t;this._take(t,e?.files);let s=e?.getData("text/plain")??"",{value:n,selectionStart:r,selectionEnd:o}=this._text;t.defaultPrevented||n.length-(o-r)+s.length<=It||(t.preventDefault(),this._files.add([new File([s],"pasted-text.txt",{type:"text/plain"})]),this.say(a("The pasted text is too long for a message, so it was attached as a file.")))}_left(){this._session?.typing(!1),this._suggestions.close()}_pickEmoji({currentTarget:t}){let e=s=>{this._text.focus(),this._text.setRangeText(s,this._text.selectionStart,this._text.selectionEnd,"end"),this._written()};t?.dispatchEvent(new CustomEvent("pick-emoji",{bubbles:!0,detail:e}))}_written(){let t=yt(this._text.value,this._text.selectionStart);t&&(this._text.value=t.text,this._text.setSelectionRange(t.caret,t.caret)),this._value=this._text.value,this._suggestions.update(),this._chat&&(b.set(this._draftOf(this._chat),this._value),clearTimeout(this._saveTimer),this._saveTimer=window.setTimeout(()=>b.save(),le),H.values.typing_notices&&this._session.typing(this._value.trim()!==""))}_key(t){if(t.isComposing||t.keyCode===229||this._voice.escape(t))return;if(this._suggestions.key(t)){t.preventDefault();return}let e=t.ctrlKey||t.metaKey;if(t.key==="Enter"&&t.altKey&&this._mayQueue){t.preventDefault(),this._queue();return}t.key==="Enter"&&(e||H.values.send_key==="enter"&&!t.shiftKey)&&(t.preventDefault(),this.querySelector("form")?.requestSubmit())}get _mayQueue(){return this._works.value.length>0&&!this._page.state.thread}_queue(){this._isQueued=!0,this.querySelector("form")?.requestSubmit(),this._isQueued=!1}_submit(t){t.preventDefault();let e=this._text.value.trim();if(!e&&this._files.isEmpty)return;if(!this._session){this._isSentOnOpening=!0,this.say(a("Loading the chat. Your message will be sent automatically."));return}if(this._voice.isRecording){this.say(a("Finish the voice note before you send."));return}if(this._files.isBusy){this.say(a("Wait for the upload to finish before you send."));return}let s=this._files.isEmpty?Ct(this._text.value):null;if(s){this._run(s);return}let{replyTo:n,thread:r}=this._page.state;this._session.send({text:e,attachments:this._files.take(),replyTo:n?.id,thread:r,alsoInChat:!!this._alsoInChat?.checked,queue:this._isQueued}),this._alsoInChat&&(this._alsoInChat.checked=!1),n&&this._page.dispatch({type:"reply-to",entry:null}),this._clear(),this._view.querySelector("message-list").toBottom?.()}async _run({name:t,argument:e,command:s}){if(!s){this.say(h(a("Unknown command /%(name)s. Type /help for a list, or start with a space to send it as text."),{name:t}));return}this._clear();try{let n=await s.run(this,e);n&&this.say(n)}catch(n){if(!g(n))throw n;this.say(n.message)}}_clear(){this._text.value="",this._value="",this._suggestions.close(),this._chat&&b.set(this._draftOf(this._chat),""),b.save(),this._session.typing(!1)}_chatsChanged(){this._chat&&(this._chat=p.get(this._chat.id)||this._chat),this._suggestions.refresh(),this.requestUpdate()}};customElements.define("chat-composer",G);export{be as a,$e as b,Ce as c,Te as d,Me as e,bt as f,$t as g,We as h,Ge as i,Et as j,Ot as k,ns as l,as as m,Q as n,ue as o,I as p,we as q,ye as r,Pt as s,ft as t};
