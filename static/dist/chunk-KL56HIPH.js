import{D as k,Ea as C,Ia as ht,J as et,K as O,L as $,La as lt,N as m,P as N,Q as b,Qa as dt,R as x,Sa as z,T as st,U as u,V as it,Wa as pt,X as p,Y as _,Z as nt,ba as d,c as Q,d as W,ea as A,f as X,fa as f,g as Y,ga as at,h as j,j as V,ra as rt,s as w,sa as ot,w as J,y as Z,z as tt,za as ct}from"./chunk-IPN24RVJ.js";import{a as n,b as G,c,e as P,l as S,o as g,s as F}from"./chunk-BFUDS75X.js";var Tt=`
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
🖤 black_heart`,ut=Tt.trim().split(`
`).map(i=>{let[t,...e]=i.split(" ");return{emoji:t,name:e[0],words:e.join(" ")}}),Mt=new Map(ut.flatMap(({emoji:i,words:t})=>t.split(" ").map(e=>[e,i])).reverse());function se(i){let t=i.trim().toLowerCase().replaceAll(":","").split(/[\s_]+/).filter(Boolean);return ut.filter(e=>t.every(s=>e.words.includes(s))||e.emoji===i.trim())}function mt(i,t){let e=/(?:^|[\s(])(:([a-z0-9_+-]{1,30}):)$/.exec(i.slice(0,t)),s=e&&Mt.get(e[2]);if(!s)return null;let a=t-e[1].length;return{text:i.slice(0,a)+s+i.slice(t),caret:a+s.length}}function ne(i,t){let e=t.getBoundingClientRect(),{offsetWidth:s,offsetHeight:a}=i,r=e.bottom+4+a<=innerHeight?e.bottom+4:e.top-4-a,l=getComputedStyle(t).direction==="rtl"?e.left:e.right-s;i.style.left=`${Math.max(4,Math.min(l,innerWidth-s-4))}px`,i.style.top=`${Math.max(4,Math.min(r,innerHeight-a-4))}px`}var M=({id:i})=>`/chats/${encodeURIComponent(i)}`;async function y(i,t){try{await t(),d(i)}catch(e){if(!g(e))throw e;d(e.message)}}var T=(i,t)=>m.send("PUT",`${M(i)}/place`,t).then(e=>u.take(e));function le(i){let t=u.get(i);t?.marked_unread&&y("",()=>T(t,{marked_unread:!1}))}var _t=i=>i.participants.find(({kind:t,id:e})=>t==="user"&&String(e)===$.id);async function Ut(i){let t=_t(i);!t||!confirm(c(n("Leave %(name)s? You will no longer see its messages."),{name:u.nameOf(i)}))||await y(n("You left the chat."),async()=>{await m.send("DELETE",`${M(i)}/participants/${t.participant_id}`),dispatchEvent(new CustomEvent("left-chat",{detail:i.id})),await u.refresh()})}async function Rt(i){confirm(c(n("Delete %(name)s for everyone? Its messages and files cannot be recovered."),{name:u.nameOf(i)}))&&await y(n("Chat deleted."),async()=>{await m.send("DELETE",M(i)),dispatchEvent(new CustomEvent("left-chat",{detail:i.id})),await u.refresh()})}var de=[{name:"pin-chat",icon:"pin",label:({pinned:i})=>i?n("Unpin"):n("Pin"),run:i=>y(i.pinned?n("Unpinned."):n("Pinned."),()=>T(i,{pinned:!i.pinned}))},{name:"mute-chat",icon:"muted",label:({muted:i})=>i?n("Unmute"):n("Mute"),run:i=>y(i.muted?n("Unmuted."):n("Muted."),()=>m.send("PUT",`${M(i)}/mute`,{muted:!i.muted}).then(t=>u.take(t)))},{name:"mark-unread",icon:"message",label:()=>n("Mark as unread"),isOffered:({unread:i,marked_unread:t})=>!i&&!t,run:i=>y(n("Marked as unread."),()=>T(i,{marked_unread:!0}))},{name:"archive-chat",icon:"down",label:({archived:i})=>i?n("Move to the chats"):n("Archive"),run:i=>y(i.archived?n("Moved to the chats."):n("Archived."),()=>T(i,{archived:!i.archived}))},{name:"leave-chat",icon:"back",label:()=>n("Leave…"),isDangerous:!0,run:Ut},{name:"delete-chat",icon:"bin",label:()=>n("Delete for everyone…"),isDangerous:!0,isOffered:i=>_t(i)?.role==="owner",run:Rt}];function pe(i){if(i.archived)return"archived";if(i.pinned)return"pinned";let t=u.others(i);return t.length>0&&t.every(({kind:e})=>e==="agent")?"agents":!i.title&&t.length===1?"people":"groups"}function ft(i,t){i.addEventListener("pay",e=>gt(t,e.detail.payment)),i.addEventListener("pay-always",e=>qt(t,e.target,e.detail)),i.addEventListener("pay-cancel",e=>t.session()?.cancel(e.detail.payment.responseId))}function gt({session:i,say:t},e){let s=i();if(!s)return;let a=s.payments.list.find(({key:o})=>o===e.key);!a||a.state==="sent"||(s.pay(a),s.ready||t(n("You're offline. The payment will be sent once you're back online.")))}async function qt(i,t,{payment:e,upTo:s}){if(e.state!=="sent"){if(/^\d+(\.\d+)?$/.test(s)&&P(s)<P(e.amount)){t.say(c(n("%(agent)s asks for %(amount)s now: allow at least that, or pay once."),{agent:e.agent,amount:S(e.amount,e.currency)}));return}try{let a=`/api/payments/approvals/${encodeURIComponent(e.agent)}`;await m.send("PUT",a,{up_to:s,currency:e.currency})}catch(a){if(!g(a))throw a;t.say(a.message);return}gt(i,e)}}var yt=class{constructor(t,e,s=x){this._page=s,this._session=null,ft(t,{session:()=>this._session,say:e})}listen(t,e,s){this._session=t;let a=Date.now(),o=({sender_id:h})=>e()?.participants.some(l=>l.kind==="agent"&&l.id===h&&l.pricing)??!1,r=new pt(h=>h.at<a||o(h),this._page);t.addEventListener("payments",h=>this._changed(h.detail),{signal:s}),t.addEventListener("response-end",h=>{let l=h.detail;l.thread===this._page.state.thread&&r.ended(l)},{signal:s}),document.addEventListener("visibilitychange",()=>document.hidden||r.refresh(),{signal:s}),addEventListener("focus",()=>r.refresh(),{signal:s}),s.addEventListener("abort",()=>r.close()),this._changed(null)}_changed(t){let e=this._session;if(!e)return;let s=({responseId:o})=>e.responses.get(o)?.thread||"",a=({responseId:o})=>it.active?.agents.isAnswer(o);this._page.dispatch({type:"payments",list:e.payments.list.filter(o=>!a(o)).map(o=>({...o,thread:s(o)}))}),!(!t||a(t)||s(t)!==this._page.state.thread)&&d(c(t.isTopUp?n("%(agent)s asks for %(amount)s to go on. Pay or cancel at the end of the chat."):n("%(agent)s asks for %(amount)s for an answer. Pay or cancel at the end of the chat."),{agent:t.agent,amount:S(t.amount,t.currency)}))}};function Ae({participants:i},{userId:t}){let e=i.find(s=>s.kind==="user"&&String(s.id)===$.id);return!t||t===$.id||e?.role==="owner"}function Ce(i,{approval:{key:t},approved:e,reason:s},a){let o=i.approvals.list.find(r=>r.key===t);o&&!i.decide(o,e,s)&&a(n("You're offline. Try again when you're back online."))}var wt=500,vt={completed:n("%(agent)s answered: %(text)s"),cancelled:n("%(agent)s: answer stopped"),failed:n("%(agent)s: answer failed")},It={...vt,cancelled:n("%(agent)s: answer stopped by %(reason)s"),failed:n("%(agent)s: answer failed. %(reason)s")},bt=class{constructor(){this._said=new Set}message({name:t,content:e}){d(c(n("%(name)s: %(text)s"),{name:V.nameOf(t),text:F(e,wt)||n("sent a file")}))}answering({id:t,agent:e}){!e||this._said.has(t)||(this._said.add(t),d(c(n("%(name)s is answering"),{name:e})))}ended({id:t,agent:e,status:s,reason:a,parts:o}){if(!this._said.has(t))return;let r=o.map(l=>l.kind==="text"?l.text:"").join(`
`),h=F(r,wt)||n("No text");d(c((a?It:vt)[s],{agent:e||n("Agent"),reason:a??"",text:h}))}approvals(t,e){for(let s of t)s.state!=="closed"||this._said.has(s.key)||(this._said.add(s.key),d(ht(s)));e&&d(c(n("%(agent)s asks to use %(name)s. Allow or refuse it at the end of the chat."),{agent:e.agent,name:e.name}))}};var E=50,Dt=5e3,Lt=["agent.stopped","response.created","response.cancelled","response.error"],Pt=["agent.stopped","call.ended","chat.forked","link.created","link.revoked","participant.joined","participant.left","participant.updated","response.created","response.cancelled","response.error"],kt=class{constructor(t,e,s={chat:async()=>{}}){this._store=t,this._api=e,this._kept=s,this.isKept=!1,this._place=0,this._refreshing=new Map}async load(t){let e=this._place+=1,{chatId:s}=this._store.state,{entries:a,hasMore:o,isKept:r=!1}=await this._newest(s);if(!this._isAt(s,e))return;this.isKept=r;let h=o?(a[0]?.seq??0)-1:0;this._store.dispatch({type:"page",entries:a,hasOlder:o,hasNewer:!1,failures:t}),this._showFacts(s,e,await this._facts(h,R(a)+E))}async _newest(t){try{return await this._page("order=desc")}catch(e){let s=U(e)&&e.status===0?await this._kept.chat(t):void 0;if(!s)throw e;return{entries:s.entries,hasMore:s.hasOlder,isKept:!0}}}async loadNewest(){this._store.state.hasNewer&&await this._show("order=desc",({hasMore:t})=>({hasOlder:t,hasNewer:!1}))}async loadAround(t){await this._show(`order=desc&around=${encodeURIComponent(t)}`,({entries:e,hasMore:s})=>{let a=typeof t=="number"?t:e.find(({id:r})=>r===t)?.seq??0,o=e.filter(({seq:r})=>r>a);return{hasOlder:s,hasNewer:o.length>=Math.floor(E/2)}})}async loadOlder(){let[t]=this._store.state.entries;await this._grow("older",`order=desc&before=${t.seq}`,({entries:e,hasMore:s})=>this._facts(s?e[0].seq-1:0,t.seq))}async loadNewer(){let t=R(this._store.state.entries);await this._grow("newer",`order=asc&after=${t}`,({entries:e,hasMore:s})=>this._facts(t,R(e)+(s?1:E)))}refresh(t){let e=this._refreshing.get(t)||this._refresh(t).finally(()=>this._refreshing.delete(t));return this._refreshing.set(t,e),e}async loadPins(){let{chatId:t}=this._store.state,{data:e}=await this._api.get(`/chats/${encodeURIComponent(t)}/pins?limit=100`);this._store.state.chatId===t&&this._store.dispatch({type:"pins",entries:e.map(s=>k(s))})}async withQuote(t){let e=t.reply_to;if(!e||e.content!==void 0)return t;let s=this._store.state.entries.find(({id:a})=>a===e.id);if(s)return{...t,reply_to:{id:s.id,name:s.name,content:s.content}};try{let{id:a,name:o,content:r}=await this._api.get(`/messages/${encodeURIComponent(e.id)}`);return{...t,reply_to:{id:a,name:o,content:r}}}catch(a){if(!U(a))throw a;return t}}async _refresh(t){let{chatId:e}=this._store.state,s=await this._api.get(`/messages/${encodeURIComponent(t)}?expand=signature`);this._store.state.chatId===e&&this._store.dispatch({type:"refreshed",entry:k(s)})}_isAt(t,e){return this._store.state.chatId===t&&this._place===e}async _page(t){let{chatId:e,thread:s}=this._store.state,a=await this._api.get(`/chats/${encodeURIComponent(e)}/messages?limit=${E}&expand=signature&thread=${s||"none"}&${t}`),o=a.data.map(l=>k(l)),r=t.startsWith("order=desc"),h=r?o.reverse():o;return s&&r&&!a.has_more&&h.unshift(k(await this._api.get(`/messages/${encodeURIComponent(s)}?expand=signature`))),{entries:h,hasMore:a.has_more}}async _show(t,e){let s=this._place+=1,{chatId:a}=this._store.state,o=await this._page(t),{entries:r}=o,{hasOlder:h,hasNewer:l}=e(o),v=await this._facts(h?(r[0]?.seq??1)-1:0,R(r)+(l?1:E));this._isAt(a,s)&&(this._store.dispatch({type:"place",entries:r,hasOlder:h,hasNewer:l}),this._showFacts(a,s,v))}async _grow(t,e,s){let{chatId:a}=this._store.state,o=this._place;this._store.dispatch({type:"loading",end:t});try{let r=await this._page(e),h=r.entries.length?await s(r):[];if(!this._isAt(a,o))return;let l=t==="older"?{hasOlder:r.hasMore}:{hasNewer:r.hasMore};this._store.dispatch({type:"page",entries:r.entries,...l}),this._showFacts(a,o,h)}catch(r){if(!U(r))throw r;this._isAt(a,o)&&this._store.dispatch({type:"load-failed",end:t})}}_showFacts(t,e,s){this._isAt(t,e)&&this._store.dispatch({type:"facts",events:s})}async _facts(t,e){let s=Math.max(0,t,e-Dt),{chatId:a,thread:o}=this._store.state;try{let r=`/chats/${encodeURIComponent(a)}/events?types=${(o?Lt:Pt).join(",")}&after=${s}&before=${e}&order=desc&limit=200`;return(await this._api.get(r)).data.map(({seq:l,type:v,payload:Ct})=>({...Ct,seq:l,type:v}))}catch(r){if(!U(r))throw r;return[]}}},U=i=>i instanceof Error&&i.name==="ApiError",R=i=>i.at(-1)?.seq??0,$t=({approvals:i,responses:t})=>i.list.map(e=>({...e,thread:t.get(e.responseId)?.thread||""}));function je(i,t,e){let s=()=>i.dispatch({type:"own",ids:t.ownResponses.map(({id:r})=>r)}),a=()=>i.dispatch({type:"works",list:z(t)}),o={response:r=>{i.dispatch({type:"response",response:r}),s(),a()},"response-end":r=>{i.dispatch({type:"response-end",response:r,failures:t.failures}),s(),a()},approvals:()=>{i.dispatch({type:"approvals",list:$t(t)}),a()},payments:a,act:r=>i.dispatch({type:"act",event:r}),fact:r=>i.dispatch({type:"facts",events:[r]}),participants:r=>i.dispatch({type:"facts",events:[r]}),turns:()=>i.dispatch({type:"turns",list:t.turns}),queue:r=>i.dispatch({type:"queue",list:r}),read:r=>i.dispatch({type:"thread-read",event:r}),state:({value:r,by:h})=>i.dispatch({type:"shared",shared:{value:r,by:h}})};for(let[r,h]of Object.entries(o))t.addEventListener(r,l=>h(l.detail),{signal:e})}function Ne(i,t){t.noteOwn(i.state.entries);for(let e of t.responses.values())i.dispatch({type:"response",response:e});for(let e of t.broken.values())i.dispatch({type:"response-end",response:e,failures:t.failures});i.dispatch({type:"own",ids:t.ownResponses.map(({id:e})=>e)}),i.dispatch({type:"approvals",list:$t(t)}),i.dispatch({type:"works",list:z(t)}),i.dispatch({type:"turns",list:t.turns}),i.dispatch({type:"queue",list:t.queue}),i.dispatch({type:"shared",shared:{value:t.state.value,by:t.state.by}})}var q=i=>t=>(t.dispatchEvent(new CustomEvent(i,{bubbles:!0})),"");async function jt(i){let{chatId:t}=x.state,e=i.replace(/^@/,"");if(!e)return n("Name a person or an agent: /invite bob.");let s=await m.get("/agents"),a=(s.data||s).some(r=>r.name===e),{invitation:o}=await m.post(`/chats/${encodeURIComponent(t)}/participants`,{[a?"agent":"user"]:e});return o?c(n("%(name)s is invited."),{name:e}):(await u.reload(t),c(n("%(name)s is in the chat now."),{name:e}))}async function Nt(){let{entries:i,replyTo:t}=x.state,e=t||i.findLast(({deletedAt:s})=>!s);return e?rt()?n("This chat belongs to another server, where messages are pinned."):ot()?(await ct(e,!0),c(n("The message of %(name)s is pinned."),{name:e.name})):n("Only owners can pin messages in this chat."):n("There's no message to pin yet.")}var H=[{name:"help",note:n("Shortcuts and commands"),run:q("show-shortcuts")},{name:"invite",note:n("Add a person or an agent"),argument:"name",run:(i,t)=>jt(t)},{name:"members",note:n("Show or hide the members"),run:q("toggle-members")},{name:"new",note:n("Start a chat"),run:q("new-chat")},{name:"pin",note:n("Pin the quoted or newest message"),run:Nt},{name:"search",note:n("Search your chats"),run:q("open-search")}];function xt(i){let t=/^\/([a-z]+)(?:\s+([^\n]*))?$/.exec(i.trimEnd());if(!t)return null;let[,e,s=""]=t;return{name:e,argument:s.trim(),command:H.find(a=>a.name===e)}}function Ft(i){return i.status===413?c(n("Too large (max. %(size)s)."),{size:C(O.upload_bytes)}):i.status===0?n("Couldn't reach the server."):i.message}var zt=({name:i})=>i.replace(/\.\w+$/,""),I=class{constructor(t,e){this._host=t,this._say=e,this._made=0,this._items=[],t.addController(this)}hostDisconnected(){this.clear()}get isEmpty(){return this._items.every(t=>t.error)}get isBusy(){return this._items.some(t=>!t.stored&&!t.error)}add(t){for(let e of t)e.size>O.upload_bytes?this._say(c(n("%(name)s is too large (max. %(size)s)."),{name:e.name,size:C(O.upload_bytes)})):e.size===0?this._say(c(n("%(name)s is empty. Choose another file."),{name:e.name})):this._upload(e)}take(){let t=this._items.flatMap(e=>e.stored??[]);return this.clear(),t}clear(){for(let t of this._items)this._release(t);this._items=[],this._host.requestUpdate()}template(){return p`<ul class="tray" aria-label=${n("Attachments")} ?hidden=${this._items.length===0}>${nt(this._items,({key:t})=>t,t=>this._chip(t))}</ul>`}_chip(t){return t.sound?this._sound(t):this._file(t)}_sound(t){let{file:e,sound:s,error:a,stored:o,percent:r}=t;return p`<li class="tray-item tray-sound ${a?"is-failed":""}" data-testid="attachment"><sound-player .src=${s} .name=${zt(e)}></sound-player>
      ${a?p`<small>${c(n("Upload failed. %(error)s"),{error:a})}</small>`:_}${o||a?_:p`<progress class="upload" max="100" value=${r} aria-label=${c(n("Uploading %(name)s"),{name:e.name})}></progress>`}
      <button type="button" class="icon-button" aria-label=${c(n("Remove %(name)s"),{name:e.name})} title=${c(n("Remove %(name)s"),{name:e.name})} @click=${()=>this._remove(t)}>${f("close")}</button>
    </li>`}_file(t){let{file:e,preview:s,percent:a,stored:o,error:r}=t;return p`<li class="tray-item ${r?"is-failed":""}" data-testid="attachment">
      ${s?p`<img src=${s} alt="" @error=${()=>this._dropPreview(t)}>`:f("file")}
      <span class="file-text"><span class="file-name">${e.name}</span><small>${r?c(n("Upload failed. %(error)s"),{error:r}):C(e.size)}</small>
        ${o||r?_:p`<progress class="upload" max="100" value=${a} aria-label=${c(n("Uploading %(name)s"),{name:e.name})}></progress>`}</span>
      <button type="button" class="icon-button" aria-label=${c(n("Remove %(name)s"),{name:e.name})} title=${c(n("Remove %(name)s"),{name:e.name})} @click=${()=>this._remove(t)}>${f("close")}</button>
    </li>`}_dropPreview(t){URL.revokeObjectURL(t.preview),t.preview="",this._host.requestUpdate()}_dropSound(t){t.sound&&URL.revokeObjectURL(t.sound),t.sound=""}_upload(t){let e={key:this._made+=1,file:t,preview:t.type.startsWith("image/")?URL.createObjectURL(t):"",sound:t.type.startsWith("audio/")?URL.createObjectURL(t):"",percent:0,stored:null,error:"",abort:()=>{}},{done:s,abort:a}=m.upload(t,o=>{e.percent=Math.round(100*o),this._host.requestUpdate()});e.abort=a,this._items=[...this._items,e],this._host.requestUpdate(),this._finish(e,s)}async _finish(t,e){let{file:s}=t;try{let{content_id:a,url:o,filename:r,mime_type:h}=await e;t.stored={content_id:a,url:o,filename:r||s.name,mime_type:h},/^(audio|video)\//.test(h)||this._dropSound(t),d(c(n("%(name)s is attached."),{name:s.name}))}catch(a){if(a.name==="AbortError")return;if(!g(a))throw a;t.error=Ft(a),d(c(n("Couldn't upload %(name)s. %(error)s"),{name:s.name,error:t.error}))}this._host.requestUpdate()}_remove(t){this._release(t),this._items=this._items.filter(e=>e!==t),this._host.requestUpdate()}_release(t){!t.stored&&!t.error&&t.abort();for(let e of[t.preview,t.sound])e&&URL.revokeObjectURL(e)}};var Ht=500;async function Kt(i){let t=await m.get("/agents"),e=(t.data||t).find(o=>w(o.name)===i);if(e)return{kind:"agent",name:e.name};let a=(await m.get(`/users?q=${encodeURIComponent(i)}`)).data.find(o=>w(o.username)===i);return a?{kind:"user",name:a.username}:null}var K=class extends A{static properties={chat:{attribute:!1},text:{attribute:!1},_found:{state:!0},_said:{state:!0}};constructor(){super(),this.chat=void 0,this._name=void 0,this._timer=0,this.text="",this._known=new Map,this._found=null,this._said="",this._onChats=()=>this.requestUpdate()}connectedCallback(){super.connectedCallback(),u.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),u.removeEventListener("change",this._onChats)}willUpdate(){let[t]=this.chat?Z(this.text,this.chat.participants):[];t!==this._name&&(this._name=t,this._said="",this._found=null,clearTimeout(this._timer),t&&(this._timer=window.setTimeout(()=>this._ask(t),Ht)))}render(){if(!this._found){let[s]=this.chat?tt(this.text,this.chat.participants):[];return p`<p class="mention-hint" role="status" data-testid=${s?"offline-hint":_} ?hidden=${!s}>${s?c(n("%(name)s is offline and does not answer now."),{name:s}):""}</p>`}let{name:t,who:e}=this._found;return p`<p class="mention-hint" role="status" data-testid="mention-hint">
      <span>${e?c(n("%(name)s is not in this chat."),{name:e.name}):c(n("No agent or person is called @%(name)s."),{name:t})} ${this._said}</span>
      ${e?p`<button type="button" class="link" @click=${()=>this._add(e)}>${f("add")}${c(n("Add %(name)s"),{name:e.name})}</button>`:""}
    </p>`}async _ask(t){let e=this._known.get(t)??Kt(t);this._known.set(t,e);try{let s=await e;this._name===t&&(this._found={name:t,who:s})}catch(s){if(this._known.delete(t),!g(s))throw s}}async _add({kind:t,name:e}){if(!this.chat)return;let{id:s}=this.chat;try{await m.post(`/chats/${encodeURIComponent(s)}/participants`,{[t]:e}),await u.reload(s),d(c(n("%(name)s is in the chat now."),{name:e})),this.closest("chat-composer")?.querySelector("textarea")?.focus()}catch(a){if(!g(a))throw a;this._said=a.message}}};customElements.define("mention-hint",K);var Bt=8,D=class{constructor(t,e,s){this._host=t,this._textOf=e,this._sources=s,this._label="",this._from=0,this._found=[],this._active=0,this._of="",this._isDismissed=!1}get activeId(){return this._found.length?`${this._of}suggestion-${this._active}`:_}update(){this._isDismissed=!1;let t=this._textOf(),e=t.value.slice(0,t.selectionStart),s=this._found.length>0;this.close();for(let{label:a,pattern:o,all:r}of this._sources){let h=o.exec(e);if(!h)continue;let l=w(h[1]);this._label=a,this._from=e.length-h[1].length,this._found=r().filter(({name:v})=>w(v).startsWith(l)).slice(0,Bt);break}!s&&this._found.length&&d(c(G("%(n)s entry matches. Use the arrow keys.","%(n)s entries match. Use the arrow keys.",this._found.length),{n:this._found.length}))}refresh(){if(this._isDismissed||document.activeElement!==this._textOf())return;let t=this._found[this._active]?.name;this.update(),this._active=Math.max(0,this._found.findIndex(({name:e})=>e===t))}key(t){if(this._found.length===0)return!1;let e={ArrowDown:1,ArrowUp:-1}[t.key];if(e)this._active=(this._active+e+this._found.length)%this._found.length;else if(t.key==="Enter"||t.key==="Tab")this._choose(this._found[this._active]);else if(t.key==="Escape")this.close(),this._isDismissed=!0;else return!1;return this._host.requestUpdate(),!0}close(){this._found=[],this._active=0,this._host.requestUpdate()}template(t){return this._of=t,p`<ul class="mention-menu" id="${t}suggestions" role="listbox" aria-label=${this._label||n("Suggestions")} ?hidden=${this._found.length===0}>${this._found.map((e,s)=>p`<li role="option" id="${t}suggestion-${s}" aria-selected=${String(s===this._active)}
        @mousedown=${a=>this._pressed(a,e)}>${e.picture??_}<span>${e.name}</span><small>${e.note}</small></li>`)}</ul>`}_pressed(t,e){t.preventDefault(),this._choose(e)}_choose({name:t}){let e=this._textOf();this.close(),e.setRangeText(`${t} `,this._from,e.selectionStart,"end"),e.dispatchEvent(new Event("input",{bubbles:!0}))}};var Gt=5*6e4,Qt=500,Wt=400,Xt=100,Yt=32e3,Vt=["audio/webm","audio/mp4","audio/ogg"],Jt=.25,Et="note",St=i=>`${Math.floor(i/6e4)}:${String(Math.floor(i/1e3)%60).padStart(2,"0")}`,L=class{constructor(t,e,s){this._host=t,this._say=e,this._done=s,this._recording=null,this._pressedAt=0,this._isOpening=!1,this._endsAtOnce=!1,this._skipsClick=!1,t.addController(this)}hostDisconnected(){this._stop(!1)}get isRecording(){return this._recording!==null}button(){if(!W()||!("MediaRecorder"in globalThis))return _;let t=this._recording?n("Finish recording"):n("Record a voice note");return p`<button type="button" class="icon-button record ${this._recording?"is-recording":""}" aria-label=${t} title=${c(n("%(what)s (click, or hold to talk)"),{what:t})} data-testid="record"
      @pointerdown=${e=>this._press(e)} @pointerup=${()=>this._release()} @click=${e=>this._click(e)}>${f(this._recording?"check":"microphone")}</button>`}template(){let t=this._recording;return t?p`<div class="voice-strip" role="group" aria-label=${n("Voice note")} data-testid="recording">
      <span class="voice-dot" aria-hidden="true"></span><span class="voice-time">${St(Date.now()-t.since)}</span>
      <meter class="voice-level" min="0" max=${Jt} value=${t.levels.level(Et)} aria-hidden="true"></meter>
      <button type="button" class="button button-quiet" data-testid="cancel-recording" @click=${()=>this._cancel()}>${n("Cancel")}</button></div>`:_}escape(t){return t.key!=="Escape"||!this._recording?!1:(t.preventDefault(),this._cancel(),!0)}_press(t){t.button||this._recording||(this._pressedAt=Date.now(),t.currentTarget.setPointerCapture(t.pointerId),this._start())}_release(){this._pressedAt>0&&Date.now()-this._pressedAt>Wt&&(this._skipsClick=!0,this._recording?this._stop(!0):this._endsAtOnce=this._isOpening)}_click(t){let e=this._pressedAt>0&&t.detail>0;this._pressedAt=0;let s=this._skipsClick;this._skipsClick=!1,!(e||s)&&(this._recording?this._stop(!0):this._start())}async _start(){if(!this._isOpening){this._isOpening=!0,this._endsAtOnce=!1;try{let t=await Y();if(this._endsAtOnce||!this._host.isConnected){j(t),this._say(n("Hold the button while you speak, or click it to start and stop."));return}this._record(t)}catch(t){if(!(t instanceof X))throw t;this._say(t.message)}finally{this._isOpening=!1}}}_record(t){let e=Vt.find(h=>MediaRecorder.isTypeSupported(h))??"",s=new MediaRecorder(t,{mimeType:e,audioBitsPerSecond:Yt}),a=new Q(()=>{});a.watch(Et,t);let o=window.setInterval(()=>this._look(),Xt),r={recorder:s,stream:t,levels:a,pieces:[],since:Date.now(),timer:o,isKept:!1};s.ondataavailable=({data:h})=>r.pieces.push(h),s.onstop=()=>this._finished(r),s.start(),this._recording=r,d(n("Recording. Press Escape to cancel.")),this._host.requestUpdate()}_look(){this._recording&&Date.now()-this._recording.since>Gt&&(this._stop(!0),this._say(n("Voice notes can be up to 5 minutes long. Your recording was attached."))),this._host.requestUpdate()}_cancel(){this._stop(!1),d(n("The recording was discarded.")),this._host.querySelector(".record")?.focus()}_stop(t){let e=this._recording;e&&(this._recording=null,this._pressedAt=0,e.isKept=t,e.recorder.stop(),clearInterval(e.timer),e.levels.close(),this._host.requestUpdate())}_finished({recorder:t,stream:e,pieces:s,since:a,isKept:o}){if(j(e),!o)return;let r=Date.now()-a;if(r<Qt){this._say(n("Hold the button while you speak, or click it to start and stop."));return}let h=t.mimeType.split(";")[0],l=h.split("/")[1]||"webm";this._done(new File(s,`Voice note ${St(r).replace(":",".")}.${l}`,{type:h}))}};var Zt=6e3,Ot=1e5,At=40,te=400;function ee(i){let t=Array.from(i);return t.length>At?`${t.slice(0,At).join("")}…`:i}var B=class extends A{static properties={_chat:{state:!0},_own:{state:!0},_value:{state:!0},_note:{state:!0}};constructor(){super(),this._chat=void 0,this._session=null,this._isSentOnOpening=!1,this._own=[],this._value="",this._note="",this._noteTimer=0,this._saveTimer=0,this._files=new I(this,t=>this.say(t)),this._voice=new L(this,t=>this.say(t),t=>this._files.add([t])),this._suggestions=new D(this,()=>this._text,[{label:n("Mention"),pattern:J,all:()=>this._mentionable()},{label:n("Commands"),pattern:/^\/([a-z]*)$/,all:()=>H.map(({name:t,note:e})=>({name:t,note:e}))}]),this._onChats=()=>this._chatsChanged(),this._isQueued=!1,this._works=new et(this,()=>this._page,t=>t.works)}connectedCallback(){super.connectedCallback(),u.addEventListener("change",this._onChats);let t=this._view;t.ondragover=e=>{e.dataTransfer?.types.includes("Files")&&(e.preventDefault(),this.classList.add("is-dropping"))},t.ondragleave=e=>{t.contains(e.relatedTarget)||this.classList.remove("is-dropping")},t.ondrop=e=>{this.classList.remove("is-dropping"),this._take(e,e.dataTransfer?.files)}}disconnectedCallback(){super.disconnectedCallback(),clearTimeout(this._noteTimer),u.removeEventListener("change",this._onChats)}get _view(){return this.closest("thread-panel, chat-view")}get _page(){return st(this)}_draftOf({id:t}){return[t,this._page.state.thread].filter(Boolean).join(" ")}get _text(){return this.querySelector("textarea")}render(){let t=this._value.trim()&&this._chat?dt(this._chat,this._value):"",e=this._value.trim()!==""||!this._files.isEmpty,s=this._own.map(l=>l.agent||"agent").join(", "),a=s?c(n("Stop %(name)s"),{name:s}):n("Stop the answer"),{thread:o}=this._page.state,r=o?"thread-":"",h=this._chat&&!matchMedia("(max-width: 519px)").matches?ee(u.nameOf(this._chat)):"";return p`
      <p class="composer-note" role="status" ?hidden=${!this._note}>${this._note}</p>
      <form class="composer" @submit=${l=>this._submit(l)}>
        ${this._suggestions.template(r)}<reply-preview></reply-preview>${this._voice.template()}${this._files.template()}
        <div class="composer-row">
          ${this._chat?.home?_:p`<button type="button" class="icon-button" aria-label=${n("Attach files")} title=${n("Attach files")} data-testid="attach" @click=${()=>this._picker.click()}>${f("attach")}</button>`}
          <input type="file" multiple hidden tabindex="-1" data-testid="file-input" @change=${()=>this._picked()}>
          <textarea id="${r}composer-text" rows="1" dir="auto" data-testid="composer" aria-label=${o?n("Reply in the thread"):n("Message")} placeholder=${o?n("Reply"):h?c(n("Message %(name)s"),{name:h}):n("Message")}
            enterkeyhint="send" autocomplete="off" maxlength=${Ot} aria-describedby="${r}price-line" aria-autocomplete="list" aria-controls="${r}suggestions"
            aria-activedescendant=${this._suggestions.activeId} @input=${()=>this._written()} @keydown=${l=>this._key(l)}
            @paste=${l=>this._pasted(l)} @blur=${()=>this._left()}></textarea>
          <button type="button" class="icon-button emoji-button" aria-label=${n("Emoji")} title=${n("Emoji")} aria-haspopup="dialog" data-testid="emoji" @click=${l=>this._pickEmoji(l)}>${f("smile")}</button>
          ${this._chat?.home?_:this._voice.button()}
          <button type="button" class="icon-button stop" aria-label=${a} title=${a} data-testid="stop" ?hidden=${!s} @click=${()=>this.stopOwn()}>${f("stop")}</button>
          <button type="button" class="icon-button send-later" aria-label=${n("Queue (send when the answer is done)")} title=${n("Queue (send when the answer is done)")} data-testid="send-later" ?hidden=${!this._mayQueue||!e} @click=${()=>this._queue()}>${f("clock")}</button>
          <button type="submit" class="icon-button send" aria-label=${n("Send")} title=${n("Send")} data-testid="send" ?disabled=${!e}>${f("send")}</button>
        </div>
      </form>
      ${o?p`<label class="also-in-chat"><input type="checkbox" data-testid="also-in-chat">${n("Also send to the chat")}</label>`:""}
      <mention-hint .chat=${this._chat} .text=${this._value}></mention-hint>
      <p class="price-line" id="${r}price-line" data-testid="price-line" ?hidden=${!t}>${t}</p>
      <div class="drop-hint" aria-hidden="true">${n("Drop files to attach them")}</div>`}updated(){let t=this._text;t.style.height="auto",t.style.height=`${t.scrollHeight}px`}async open(t,e){this._chat=t,this._session=e,await this.updateComplete,this._text.value||=b.get(this._draftOf(t)),this._value=this._text.value,this._isSentOnOpening&&(this._isSentOnOpening=!1,this.say(""),this.querySelector("form")?.requestSubmit());let s=document.activeElement===document.body||document.activeElement?.matches(".chat-item");matchMedia("(pointer: fine)").matches&&s&&this._text.focus()}focusText(){this._text.focus()}write(t){this._text.value.trim()||(this._text.value=t,this._written()),this._text.focus()}async showRunning(t){let e=this.querySelector(".stop"),s=e!==null&&document.activeElement===e;this._own=t,await this.updateComplete,s&&t.length===0&&this._text.focus()}say(t){clearTimeout(this._noteTimer),this._note=t,this._noteTimer=window.setTimeout(()=>{this._note=""},Zt)}stopOwn(){if(this._own.length===0)return!1;for(let t of this._own)this._session.cancel(t.id);return d(n("Stopping")),!0}get isEmpty(){return this._text.value===""&&this._files.isEmpty}get _alsoInChat(){return this.querySelector(".also-in-chat input")}get _picker(){return this.querySelector("input[type=file]")}chooseFiles(){this._picker.click()}_picked(){this._files.add(this._picker.files??[]),this._picker.value="",this._text.focus()}_mentionable(){return(this._chat?u.others(this._chat):[]).toSorted((e,s)=>e.kind.localeCompare(s.kind)||e.name.localeCompare(s.name)).map(e=>({name:e.name,note:e.kind==="agent"?lt(e.pricing)||"agent":e.display_name||"person",picture:at(e.name,e.kind)}))}_take(t,e){e?.length&&(t.preventDefault(),this._attach(e))}_attach(t){let e=this._chat?.home;return e?this.say(c(n("This chat belongs to %(server)s, to which files are not sent yet."),{server:e})):this._files.add(t),!e}_pasted(t){let{clipboardData:e}=t;this._take(t,e?.files);let s=e?.getData("text/plain")??"",{value:a,selectionStart:o,selectionEnd:r}=this._text;t.defaultPrevented||a.length-(r-o)+s.length<=Ot||(t.preventDefault(),this._attach([new File([s],"pasted-text.txt",{type:"text/plain"})])&&this.say(n("The pasted text is too long for a message, so it was attached as a file.")))}_left(){this._session?.typing(!1),this._suggestions.close()}_pickEmoji({currentTarget:t}){let e=s=>{this._text.focus(),this._text.setRangeText(s,this._text.selectionStart,this._text.selectionEnd,"end"),this._written()};t?.dispatchEvent(new CustomEvent("pick-emoji",{bubbles:!0,detail:e}))}_written(){let t=mt(this._text.value,this._text.selectionStart);t&&(this._text.value=t.text,this._text.setSelectionRange(t.caret,t.caret)),this._value=this._text.value,this._suggestions.update(),this._chat&&(b.set(this._draftOf(this._chat),this._value),clearTimeout(this._saveTimer),this._saveTimer=window.setTimeout(()=>b.save(),te),N.values.typing_notices&&this._session.typing(this._value.trim()!==""))}_key(t){if(t.isComposing||t.keyCode===229||this._voice.escape(t))return;if(this._suggestions.key(t)){t.preventDefault();return}let e=t.ctrlKey||t.metaKey;if(t.key==="Enter"&&t.altKey&&this._mayQueue){t.preventDefault(),this._queue();return}t.key==="Enter"&&(e||N.values.send_key==="enter"&&!t.shiftKey)&&(t.preventDefault(),this.querySelector("form")?.requestSubmit())}get _mayQueue(){return this._works.value.length>0&&!this._page.state.thread}_queue(){this._isQueued=!0,this.querySelector("form")?.requestSubmit(),this._isQueued=!1}_submit(t){t.preventDefault();let e=this._text.value.trim();if(!e&&this._files.isEmpty)return;if(!this._session){this._isSentOnOpening=!0,this.say(n("Loading the chat. Your message will be sent automatically."));return}if(this._voice.isRecording){this.say(n("Finish the voice note before you send."));return}if(this._files.isBusy){this.say(n("Wait for the upload to finish before you send."));return}let s=this._files.isEmpty?xt(this._text.value):null;if(s){this._run(s);return}let{replyTo:a,thread:o}=this._page.state;this._session.send({text:e,attachments:this._files.take(),replyTo:a?.id,thread:o,alsoInChat:!!this._alsoInChat?.checked,queue:this._isQueued}),this._alsoInChat&&(this._alsoInChat.checked=!1),a&&this._page.dispatch({type:"reply-to",entry:null}),this._clear(),this._view.querySelector("message-list").toBottom?.()}async _run({name:t,argument:e,command:s}){if(!s){this.say(c(n("Unknown command /%(name)s. Type /help for a list, or start with a space to send it as text."),{name:t}));return}this._clear();try{let a=await s.run(this,e);a&&this.say(a)}catch(a){if(!g(a))throw a;this.say(a.message)}}_clear(){this._text.value="",this._value="",this._suggestions.close(),this._chat&&b.set(this._draftOf(this._chat),""),b.save(),this._session.typing(!1)}_chatsChanged(){this._chat&&(this._chat=u.get(this._chat.id)||this._chat),this._suggestions.refresh(),this.requestUpdate()}};customElements.define("chat-composer",B);export{se as a,ne as b,le as c,de as d,pe as e,ft as f,yt as g,Ae as h,Ce as i,bt as j,kt as k,je as l,Ne as m,H as n};
