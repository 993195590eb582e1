import{a as Rt,c as cs,f as hs,g as ds,h as us,i as ps,j as ms,k as fs,l as _s,m as gs,n as Nt,o as gt,p as bs,t as ys}from"./chunk-AORLUFNW.js";import{a as pt,b as Ge,c as Ze}from"./chunk-UY5A2LAX.js";import{$ as D,$a as ts,A as Re,C as dt,D as Ne,E as T,Ea as We,F as Le,Ma as mt,Na as Ke,P as De,Q as Pe,Ra as ze,Sa as Ye,U as je,V as Ue,Va as Xe,W as G,X as x,Z as _,Za as Je,_ as Fe,_a as Qe,b as Te,c as i,ca as Mt,d as S,da as q,db as es,e as u,ea as k,eb as Z,ga as f,gb as ss,h as lt,ha as Be,hb as et,i as ct,ia as He,j as qe,k as ht,ka as r,la as d,lb as ft,m as Y,ma as j,mb as _t,n as $,nb as is,ob as ns,pb as os,qa as v,qb as as,ra as A,rb as rs,sa as E,sb as ls,u as Ie,ua as b,v as M,va as m,wa as N,x as Me,xa as ut,y as R,ya as Ve,za as L}from"./chunk-KWRIH4ZQ.js";var Lt=6,Dt=class extends b{static properties={_entry:{state:!0},_wanted:{state:!0}};constructor(){super(),this._entry=null,this._take=null,this._wanted="",this._origin=null}get _box(){return this.firstElementChild}render(){let t=Rt(this._wanted);return r`<div
      class="menu emoji-picker"
      popover="auto"
      role="dialog"
      aria-label=${this._entry?i("React"):i("Emoji")}
      data-testid="emoji-picker"
      @keydown=${e=>this._key(e)}
    >
      <form class="emoji-form" @submit=${e=>this._submit(e)}>
        <input
          type="search"
          class="field"
          name="emoji"
          aria-label=${i("Find an emoji")}
          placeholder=${i("Find an emoji")}
          maxlength="32"
          autocomplete="off"
          .value=${this._wanted}
          @input=${e=>{this._wanted=e.target.value}}
        />
      </form>
      <div class="emoji-grid">
        ${t.map(({emoji:e,name:s})=>r`<button
              type="button"
              class="emoji"
              aria-label=${s.replaceAll("_"," ")}
              title=${`:${s}:`}
              aria-pressed=${this._entry?String(this._isOwn(e)):d}
              @click=${()=>this._give(e)}
            >
              ${e}
            </button>`)}
      </div>
      ${t.length?d:r`<p class="palette-none" role="status">
              ${i("No matches. Press Enter to use what you typed.")}
            </p>`}
    </div>`}async open(t,e,s=null){[this._origin,this._entry,this._take,this._wanted]=[t,e,s,""],await this.updateComplete;let n=this._box;n.showPopover(),ft(n,t),n.querySelector(matchMedia("(pointer: fine)").matches?"input":"button")?.focus({preventScroll:!0})}_isOwn(t){return this._entry?.reactions.some(e=>e.emoji===t&&e.own)??!1}_key(t){if(t.key==="Escape"){t.stopPropagation(),t.preventDefault(),this._close();return}let e=t.target;if(t.key==="Tab"){let h=Array.from(this.querySelectorAll("button, input")),[p,g]=t.shiftKey?[h[0],h[h.length-1]]:[h[h.length-1],h[0]];if(e!==p)return;t.preventDefault(),g.focus();return}let s=Array.from(this.querySelectorAll(".emoji")),n=s.indexOf(e),a=getComputedStyle(this).direction==="rtl"?-1:1,l={ArrowLeft:-a,ArrowRight:a,ArrowUp:-Lt,ArrowDown:Lt}[t.key];if(!l||n===-1&&t.key!=="ArrowDown")return;t.preventDefault(),((n===-1?s[0]:s[n+l])??(l===-Lt?this.querySelector("input"):e))?.focus()}_submit(t){t.preventDefault();let e=this._wanted.trim(),s=Rt(e)[0]?.emoji??e;e&&this._give(s)}_give(t){let{_entry:e,_origin:s,_take:n}=this;this._close(),n?.(t),e&&s&&mt(s,()=>Ke(e,t,!this._isOwn(t)))}_close(){this._box.hidePopover(),this._origin?.focus({preventScroll:!0})}};customElements.define("emoji-picker",Dt);var bt=class extends b{static properties={_entry:{state:!0},_texts:{state:!0},_problem:{state:!0}};constructor(){super(),this._entry=null,this._origin=null,this._texts=null,this._problem=""}get _dialog(){return this.querySelector("dialog")}async _show(t,e){this._origin=t,this._entry=e,this._problem="",await this.updateComplete,this._dialog.showModal()}_close(){this._dialog.close()}_closed(){this._origin?.isConnected||document.querySelector("message-list .log")?.focus({preventScroll:!0})}_frame(t,e,s){return r`<dialog
      class="dialog"
      aria-labelledby="${this.localName}-title"
      data-testid=${this.localName}
      @close=${()=>this._closed()}
    >
      <div class="dialog-form">
        <header>
          <h2 id="${this.localName}-title">${t}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${i("Close")}
            title=${i("Close")}
            @click=${()=>this._close()}
          >
            ${m("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${e}${this._problem?r`<p class="dialog-error" role="alert">${this._problem}</p>`:""}
        </div>
        ${s}
      </div>
    </dialog>`}},Pt=class extends bt{open(t,e){this._show(t,e)}render(){let t=this._entry;return this._frame(i("Delete message?"),r`<p>
        ${t&&!We(t)?u(i("This deletes %(name)s's message and its files for everyone. Agents will no longer see it either."),{name:t.name}):i("This deletes your message and its files for everyone. Agents will no longer see it either.")}
      </p>`,r`<footer>
        <button type="button" class="button" @click=${()=>this._close()}>
          ${i("Cancel")}</button
        ><button
          type="button"
          class="button button-danger"
          data-testid="delete-now"
          @click=${()=>this._delete()}
        >
          ${i("Delete")}
        </button>
      </footer>`)}_delete(){let{_entry:t,_origin:e}=this;this._close(),t&&e&&E("undo-bar").removeLater(t,e)}};customElements.define("delete-dialog",Pt);var jt=class extends bt{async open(t,e){this._texts=null,await this._show(t,e);try{this._texts=(await Ye(e)).reverse()}catch(s){if(!$(s))throw s;this._problem=s.message}}render(){let e=(this._texts??[]).map((s,n)=>r`<li>
          <p class="quiet">
            ${n===0?i("Now"):Ti(s)} ·
            <time datetime=${s.created_at}>${R(Date.parse(s.created_at))}</time>
          </p>
          <div class="revision-text" dir="auto">${s.content}</div>
        </li>`);return this._frame(i("Versions of the message"),this._texts||this._problem?r`<ol class="revisions" data-testid="revisions-list">
            ${e}
          </ol>`:L(i("Loading")),"")}};customElements.define("revisions-dialog",jt);var Ti=({revision:o})=>o===0?i("Original"):u(i("Version %(n)s"),{n:o+1});var X=class extends b{static properties={_subject:{state:!0}};constructor(){super(),this._subject=null,this.label="",this.testId="",this._button=null,this._origin=null}actions(t){return[]}render(){let t=this._subject;return r`<div
      role="menu"
      class="menu"
      popover="auto"
      aria-label=${this.label}
      data-testid=${this.testId}
      @keydown=${e=>this._key(e)}
      @toggle=${e=>this._toggled(e)}
    >
      ${t===null?d:this.actions(t).map(e=>this._item(e,t))}
    </div>`}async open(t,e){this._button=t,this._subject=e;let s=t.closest("chat-message");this._origin=s!==null&&s===document.activeElement?s:t,await this.updateComplete;let n=this._menu;n.showPopover(),ft(n,t),this._items[0].focus()}get _menu(){return this.firstElementChild}get _items(){return Array.from(this.querySelectorAll("[role=menuitem]"))}_item(t,e){return r`<button
      type="button"
      role="menuitem"
      class="menu-item ${t.isDangerous?"is-dangerous":""}"
      data-testid=${t.name}
      @click=${()=>this._choose(t,e)}
    >
      ${m(t.icon)}<span>${t.label(e)}</span>
    </button>`}_toggled({newState:t}){this._button?.setAttribute("aria-expanded",String(t==="open"))}_key(t){let e=this._items,s=e.indexOf(document.activeElement),n={ArrowDown:s+1,ArrowUp:s-1,Home:0,End:e.length-1}[t.key];if(t.key==="Tab"&&this._close(),t.key==="Escape"&&(t.stopPropagation(),t.preventDefault(),this._close()),n!==void 0)t.preventDefault(),e[(n+e.length)%e.length].focus();else if(t.key.length===1&&!t.ctrlKey&&!t.metaKey&&!t.altKey){let a=t.key.toLowerCase();[...e.slice(s+1),...e].find(l=>(l.textContent??"").trim().toLowerCase().startsWith(a))?.focus()}}_close(){this._menu.hidePopover(),this._origin?.focus({preventScroll:!0})}_choose(t,e){this._close(),this._origin&&t.run(e,this._origin)}};var Ut=class extends X{label=i("Message");testId="message-menu";actions(t){return Ze(t)}};customElements.define("message-menu",Ut);var qi=6e3,Ft=class extends b{static properties={_entry:{state:!0}};constructor(){super(),this._entry=null,this._origin=null,this._timer=0,this._onLeave=()=>{this._remove()}}connectedCallback(){super.connectedCallback(),addEventListener("pagehide",this._onLeave)}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("pagehide",this._onLeave)}render(){return this._entry?r`<div
      class="undo-bar"
      role="group"
      aria-label=${i("Message deleted")}
      data-testid="undo-bar"
    >
      <span>${i("Message deleted")}</span>
      <button type="button" class="button" data-testid="undo" @click=${()=>this._undo()}>
        ${i("Undo")}
      </button>
    </div>`:d}async removeLater(t,e){await this._remove(),[this._entry,this._origin]=[t,e],this._hide(t.id,!0),this._timer=window.setTimeout(()=>this._remove(),qi),v(i("Message deleted. Press Undo to keep it.")),await this.updateComplete,this.querySelector("button")?.focus({preventScroll:!0})}_undo(){let{_entry:t,_origin:e}=this;this._end(),t&&(this._hide(t.id,!1),v(i("The message is kept.")),(e?.isConnected?e:document.querySelector("message-list .log"))?.focus({preventScroll:!0}))}async _remove(){let{_entry:t,_origin:e}=this;if(!t||!e)return;let s=this.contains(document.activeElement);this._end(),s&&document.querySelector("message-list .log")?.focus({preventScroll:!0}),await mt(e,()=>ze(t))||this._hide(t.id,!1)}_end(){clearTimeout(this._timer),[this._entry,this._origin]=[null,null]}_hide(t,e){for(let s of document.querySelectorAll(`chat-message[data-id="${CSS.escape(t)}"]`))s.isRemoved=e;q.dispatch({type:"removing",id:e?t:""})}};customElements.define("undo-bar",Ft);var C=class extends b{static properties={_error:{state:!0},_isBusy:{state:!0}};constructor(){super(),this._error="",this._isBusy=!1}get _dialog(){return this.querySelector("dialog")}async _show(){this._error="",this._isBusy=!1,await this.updateComplete,this._dialog.showModal()}_close(){this._dialog.close()}_head(t,e){return r`<header>
      <h2 id=${t}>${e}</h2>
      <button
        type="button"
        class="icon-button"
        aria-label=${i("Close")}
        title=${i("Close")}
        @click=${()=>this._close()}
      >
        ${m("close")}
      </button>
    </header>`}_problem(){return this._error?r`<p class="dialog-error" role="alert">${this._error}</p>`:d}async _attempt(t){let e=document.activeElement;this._error="",this._isBusy=!0;try{await t()}catch(n){if(!$(n))throw n;this._error=n.message}finally{this._isBusy=!1}await this.updateComplete;let s=document.activeElement;e instanceof HTMLElement&&this._dialog.open&&this.contains(e)&&s!==e&&(s===document.body||s?.contains(e))&&e.focus()}};var Bt=class extends C{static properties={_chat:{state:!0}};constructor(){super(),this._chat=null}async open(t){this._chat=t,await this._show()}render(){let t=this._chat;if(!t)return r`<dialog class="dialog"></dialog>`;let e=f.others(t).filter(({kind:l})=>l==="user"),s=l=>new Intl.ListFormat(document.documentElement.lang).format(e.filter(({takes_calls:c})=>(c??!0)===l).map(({name:c})=>M.nameOf(c))),[n,a]=[s(!0),s(!1)];return r`<dialog class="dialog" aria-labelledby="call-title" data-testid="call-dialog">
      <div class="dialog-form">
        ${this._head("call-title",i("Call everyone?"))}
        <div class="dialog-body">
          <p>${u(i("This will ring %(names)s."),{names:n})}</p>
          ${a?r`<p class="quiet" data-testid="not-called">
                  ${u(i("It won't ring for %(names)s: calls don't reach other servers."),{names:a})}
                </p>`:d}
        </div>
        <footer>
          <button type="button" class="button" @click=${()=>this._close()}>
            ${i("Cancel")}
          </button>
          <button
            type="button"
            class="button button-primary"
            data-testid="call-everyone"
            @click=${()=>this._call(t)}
          >
            ${m("phone")}${i("Call")}
          </button>
        </footer>
      </div>
    </dialog>`}_call(t){this._close(),He.start(t.id)}};customElements.define("call-dialog",Bt);var Ht=class extends X{label=i("Chat");testId="chat-menu";actions(t){return cs.filter(({isOffered:e})=>!e||e(t))}};customElements.define("chat-menu",Ht);var Ii={mention:i("Answers when mentioned"),always:i("Answers every message"),keyword:i("Answers mentions and keywords"),never:i("Listens only")},Mi={owner:i("owner"),admin:i("admin")},Vt=class extends b{static properties={chatId:{attribute:!1}};constructor(){super(),this.chatId="",this._onChats=()=>this.requestUpdate(),this._works=new Ue(this,q,t=>t.works)}connectedCallback(){super.connectedCallback(),this.setAttribute("role","complementary"),this.setAttribute("aria-label",i("Members")),f.addEventListener("change",this._onChats)}disconnectedCallback(){super.disconnectedCallback(),f.removeEventListener("change",this._onChats)}render(){let t=f.get(this.chatId);if(!t)return"";let e=s=>t.participants.filter(n=>n.kind===s);return r` <div class="panel-head">
        <h2>${i("Members")}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label=${i("Close the member list")}
          title=${i("Close the member list")}
          @click=${()=>this._fire("toggle-members")}
        >
          ${m("close")}
        </button>
      </div>
      <div class="panel-body">
        ${t.description?r`<p dir="auto">${t.description}</p>`:""}
        ${t.home?r`<p class="quiet" data-testid="chat-home">
                ${u(i("This chat is hosted on %(server)s. Members, agents and settings are managed there. Threads and calls are only available there."),{server:t.home})}
              </p>`:""}
        ${t.agents_quiet?r`<p class="quiet" data-testid="agents-quiet">
                ${i("Agents paused.")}
                ${t.home?"":r`<button
                        type="button"
                        class="link"
                        @click=${()=>this._quiet(t,!1)}
                      >
                        ${i("Resume agents")}
                      </button>`}
              </p>`:""}
        ${this._group(i("People"),e("user"))}${this._group(i("Agents"),e("agent"))}${this._payer(t)}
        ${t.home?"":r`<button
                type="button"
                class="button"
                @click=${()=>this._fire("add-members",t)}
              >
                ${m("add")}${i("Add people or agents")}
              </button>`}
        <button
          type="button"
          class="button"
          data-testid="share-button"
          @click=${()=>this._fire("share-chat",t)}
        >
          ${m("link")}${i("Invite, share, download")}
        </button>
        ${!t.home&&!t.agents_quiet&&e("agent").length?r`<button
                type="button"
                class="button"
                data-testid="quiet-agents"
                title=${i("No agent answers until a member resumes them")}
                @click=${()=>this._quiet(t,!0)}
              >
                ${m("stop")}${i("Pause all agents")}
              </button>`:""}
        <button
          type="button"
          class="button"
          data-testid="chat-settings-button"
          @click=${()=>this._fire("chat-settings",t)}
        >
          ${m("edit")}${i("Chat settings")}
        </button>
      </div>`}_group(t,e){return e.length===0?"":r`<section>
      <h3>${t}</h3>
      <ul class="member-list">
        ${j(e,({kind:s,id:n})=>`${s} ${n}`,s=>this._member(s))}
      </ul>
    </section>`}_payer(t){if(!t.participants.some(s=>s.pricing))return"";let e=r`<button
      type="button"
      class="button payer-button"
      @click=${()=>this._fire("set-payer",t)}
    >
      ${m("wallet")}${i("Payment settings")}
    </button>`;return r`<section data-testid="payer">
      <h3>${i("Who pays")}</h3>
      <p>${et[t.payer??""]}</p>
      ${ss(t)?e:""}
    </section>`}_member(t){let e=t.kind==="user"&&String(t.id)===x.id,s=t.kind==="agent"?[Ii[t.trigger??""],Z(t.pricing),t.budget&&u(t.budget_period==="total"?i("Budget: $%(amount)s in total"):i("Budget: $%(amount)s a day"),{amount:t.budget})]:[[t.display_name&&`@${t.name}`,t.online||e?i("Online"):i("Offline"),Mi[t.role],t.status_text].filter(Boolean).join(" · ")];return r`<li>
      ${N(t.name,t.kind,t.online||e)}<span class="picker-text"
        ><b dir="auto"
          ><button
            type="button"
            class="name-button"
            data-testid="open-profile"
            @click=${()=>this._profile(t)}
          >
            ${t.kind==="user"?M.nameOf(t.name):t.name}${e?` ${i("(you)")}`:""}
          </button></b
        >${t.kind==="agent"?this._work(t):d}${s.filter(Boolean).map(n=>r`<small>${n}</small>`)}</span
      >
      <button
        type="button"
        class="icon-button"
        aria-label=${u(i("Settings for %(name)s"),{name:t.name})}
        title=${u(i("Settings for %(name)s"),{name:t.name})}
        @click=${()=>this._fire("open-member",{chat:f.get(this.chatId),member:t})}
      >
        ${m("more")}
      </button>
    </li>`}_work({name:t,online:e}){let s=this._works.value.find(({agent:l})=>l===t);if(!s)return r`<small data-testid="agent-state" data-state=${e?"ready":"offline"}
        >${e?i("Ready"):i("Offline: can't answer right now")}</small
      >`;let n=es(s,l=>Be(this.chatId,l)),a=s.kind==="tool"&&s.percent!==null?r`<progress max="100" .value=${s.percent} aria-label=${n}></progress>`:d;return r`<small class="agent-work" data-testid="agent-state" data-state=${s.kind}
      >${n}${a}</small
    >`}async _quiet(t,e){try{await _.send("PATCH",`/chats/${encodeURIComponent(t.id)}`,{agents_quiet:e}),await f.reload(t.id),v(e?i("Agents paused."):i("Agents resumed."))}catch(s){if(!$(s))throw s;v(s.message)}}_profile({kind:t,name:e}){this.dispatchEvent(new CustomEvent("open-profile",{bubbles:!0,detail:{kind:t,name:e}}))}_fire(t,e){this.dispatchEvent(new CustomEvent(t,{bubbles:!0,detail:e}))}};customElements.define("members-panel",Vt);var Wt=class extends b{static properties={rootId:{attribute:!1},_problem:{state:!0}};constructor(){super(),this.rootId="",this._chatId="",this._opened=0,this._problem=null,this._listeners=new AbortController,this._history=new ms(k,_),this._announcements=new ps}connectedCallback(){super.connectedCallback(),this.setAttribute("role","complementary"),this.setAttribute("aria-label",i("Thread")),this.addEventListener("show-message",t=>this.showMessage(t.detail)),this.addEventListener("say",t=>this._composer?.say(t.detail)),f.addEventListener("change",()=>this.requestUpdate()),document.addEventListener("visibilitychange",()=>this._markRead()),addEventListener("focus",()=>this._markRead())}render(){if(!this.rootId)return"";let t=f.get(this._chatId);return r` <header class="panel-head">
        <div class="chat-title">
          <h2>${i("Thread")}</h2>
          ${t?r`<p dir="auto">${f.nameOf(t)}</p>`:""}
        </div>
        <button
          type="button"
          class="icon-button"
          aria-label=${i("Copy the link to this thread")}
          title=${i("Copy the link to this thread")}
          @click=${()=>this._copyLink()}
        >
          ${m("link")}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label=${i("Close the thread")}
          title=${i("Close the thread (Esc)")}
          data-testid="close-thread"
          @click=${()=>this._close()}
        >
          ${m("close")}
        </button>
      </header>
      ${this._problem?this._failure(this._problem):this._body()}`}_failure({status:t,message:e}){return t===404?r`<div class="empty" role="note">
        ${m("alert")}
        <h3>${i("Thread not found")}</h3>
        <p>${i("It doesn't exist, or you're not a member of the chat.")}</p>
      </div>`:r`<div class="empty" role="note">
      ${m("alert")}
      <h3>${i("Couldn't load the thread")}</h3>
      <p>${e}</p>
      <button type="button" class="button button-primary" @click=${()=>this._again()}>
        ${i("Try again")}
      </button>
    </div>`}_again(){let{_chatId:t,rootId:e}=this;this.leave(),this.open(t,e)}_body(){return j([this._opened],t=>t,()=>r` <message-list
            .mayDecide=${t=>this._chat!==void 0&&ds(this._chat,t)}
            @bottom=${()=>this._markRead()}
            @older=${()=>this._history.loadOlder()}
            @newer=${()=>this._history.loadNewer()}
            @newest=${()=>this._goTo(()=>this._history.loadNewest())}
            @place=${t=>this._goTo(()=>this._history.loadAround(t.detail))}
            @retry-turn=${t=>this._session.retry(t.detail)}
            @discard-turn=${t=>this._session.discard(t.detail)}
            @ask-again=${t=>this._composer.write(t.detail)}
            @reply=${t=>this._reply(t.detail)}
            @edit-and-ask=${t=>this._editAndAsk(t)}
            @answer-again=${t=>this._answerAgain(t.detail)}
            @stop-answer=${t=>this._stopAnswer(t.detail)}
            @decide=${t=>us(this._session,t.detail,e=>this._composer.say(e))}
          ></message-list>
          <chat-composer></chat-composer>`)}get _list(){return this.querySelector("message-list")}get _composer(){return this.querySelector("chat-composer")}isOpenAt(t,e){return this._chatId===t&&this.rootId===e}async open(t,e,s=""){if(this.isOpenAt(t,e)){s?this.showMessage(s):this._composer?.focusText();return}let n=document.activeElement!==document.body;this.leave(),[this._chatId,this.rootId,this._problem]=[t,e,null],this._opened+=1;let a=()=>this.isOpenAt(t,e);k.dispatch({type:"opened",chatId:t,thread:e}),await this.updateComplete;try{let l=f.get(t)||await f.reload(t);if(!a()||(this._chat=l,this._listen(f.session(l)),await this._composer.open(l,this._session),!s&&matchMedia("(pointer: fine)").matches?this._composer.focusText():n&&this._list.querySelector(".log").focus({preventScroll:!0}),await this._load(s),!a()))return;_s(k,this._session),this._showRunning(),this._markRead()}catch(l){if(!$(l))throw l;a()&&(this._problem=l)}}leave(){this._listeners.abort(),this._listeners=new AbortController,this._session=null,[this.rootId,this._chatId]=["",""],k.dispatch({type:"opened",chatId:"",thread:""})}escape(){return k.state.replyTo?(k.dispatch({type:"reply-to",entry:null}),!0):!!(this._composer?.isEmpty&&this._composer.stopOwn())}async showMessage(t){k.state.entries.some(e=>e.id===t)?k.dispatch({type:"target",id:t}):await this._isShown(t)||this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:this._chatId,messageId:t}}))}async _isShown(t){try{await this._history.loadAround(t)}catch(e){if(e.status!==404&&e.status!==400)throw e;return!1}return k.dispatch({type:"target",id:t}),!0}async _load(t){if(t&&await this._isShown(t))return;await this._history.load(this._session.failures);let e=k.state.entries[0]?.replies;e?.following&&e.readSeq<e.lastSeq&&k.dispatch({type:"unread-after",seq:e.readSeq})}_listen(t){this._session=t;let{signal:e}=this._listeners,s=(n,a)=>t.addEventListener(n,l=>a(l.detail),{signal:e});fs(k,t,e),s("message",n=>this._onMessage(n)),s("act",n=>this._onAct(n)),s("response",n=>this._onResponse(n)),s("response-end",n=>this._onResponseEnd(n)),s("ready",()=>this._markRead()),s("reset",()=>this._onReset()),new hs(this._list,n=>this._composer.say(n),k).listen(t,()=>f.get(this._chatId)||this._chat,e)}async _onReset(){k.dispatch({type:"emptied"}),await this._goTo(()=>this._load(""))}async _onMessage({message:t,seq:e}){let s=De(t,e),{_session:n,rootId:a}=this;s.thread===a&&(s.reply_to&&(s=await this._history.withQuote(s),n!==this._session||a!==this.rootId)||(k.dispatch({type:"message",entry:s}),Pe(s,x.id)?this._list.toBottom():s.sender_kind==="user"&&e>n.replayedTo&&v(u(i("New reply from %(name)s"),{name:s.name})),this._markRead()))}_onAct(t){let e=k.state.entries.find(({id:s})=>s===t.message_id);Ne(e,t)&&this._goTo(()=>this._history.refresh(t.message_id))}_onResponse(t){k.state.live.has(t.id)&&(this._announcements.answering(t),this._showRunning())}_onResponseEnd(t){t.thread===this.rootId&&this._announcements.ended(t),this._showRunning()}_showRunning(){this._composer?.showRunning(this._session.ownResponses.filter(t=>t.thread===this.rootId))}_reply(t){k.dispatch({type:"reply-to",entry:t}),this._composer.focusText()}_editAndAsk(t){this._session.editAndAsk(t.detail)||(t.preventDefault(),this._composer.say(i("You're offline. Try again when you're back online.")))}_answerAgain({id:t}){this._session.answerAgain(t)||this._composer.say(i("You're offline. Try again when you're back online."))}_stopAnswer(t){this._session.cancel(t.id),v(u(i("Stopping %(name)s"),{name:t.agent||i("the answer")}))}async _goTo(t){try{await t()}catch(e){if(!$(e))throw e;this._composer?.say(e.message)}}_markRead(){if(!this._session||document.hidden||!this._list?.atBottom)return;let t=k.state.entries.find(({id:s})=>s===this.rootId),e=je(k.state);!e||e.alsoInChat||e.id===this.rootId||t&&!t.replies?.following||e.seq<=Math.max(t?.replies?.readSeq??0,this._read??0)||this._session.markRead(e.id)&&(this._read=e.seq)}async _copyLink(){v(await pt(Ge(this._chatId,this.rootId))?i("Link copied."):i("Copying is blocked by the browser."))}_close(){this.dispatchEvent(new Event("close-thread",{bubbles:!0}))}};customElements.define("thread-panel",Wt);var Ri=["#bd4054","#b74c05","#93630b","#3f7b05","#007c59","#007696","#1b6cc7","#6a5ec8","#954fb1","#b04488","#4b5563"],ws=[i("Red"),i("Orange"),i("Ochre"),i("Green"),i("Sea green"),i("Teal"),i("Blue"),i("Violet"),i("Purple"),i("Pink"),i("Grey")],yt=(o,t,e)=>r`<fieldset class="colours">
    <legend>${i("Colour")}</legend>
    ${["",...Ri].map((s,n)=>r`<label class="colour" title=${n?ws[n-1]:i("Automatic")}>
          <input
            type="radio"
            name=${o}
            value=${s}
            .checked=${s===t}
            @change=${()=>e(s)}
          />
          <span
            class="colour-dot ${s?"":"is-automatic"}"
            .style=${s?`background: ${s}`:""}
          ></span>
          <span class="visually-hidden">${n?ws[n-1]:i("Automatic")}</span></label
        >`)}
  </fieldset>`;async function wt(o){let t;try{t=await createImageBitmap(o)}catch{return o}let e=Math.min(t.width,t.height),s=document.createElement("canvas");s.width=s.height=Math.min(512,e);let n=s.getContext("2d");if(!n)return o;n.drawImage(t,(t.width-e)/2,(t.height-e)/2,e,e,0,0,s.width,s.height),t.close();let a=o.type==="image/jpeg"?"image/jpeg":"image/png";return new Promise(l=>s.toBlob(c=>l(c??o),a,.9))}var Ni={"":i("Use my default"),all:i("All messages"),mentions:i("Mentions and direct messages"),none:i("Nothing")},Kt=class extends C{static properties={_chat:{state:!0},_avatar:{state:!0},_address:{state:!0}};constructor(){super(),this._chat=null,this._avatar="",this._address=null}async open(t){Object.assign(this,{_chat:t,_avatar:t.avatar||"",_address:t.avatar_url??null}),await this._show()}render(){let t=this._chat;if(!t)return r`<dialog class="dialog"></dialog>`;let e=n=>t.rights.includes(n),s=!e("describe");return r`<dialog class="dialog" aria-labelledby="settings-title" data-testid="chat-settings">
      <form
        class="dialog-form"
        @submit=${n=>this._save(n,t)}
      >
        ${this._head("settings-title",i("Chat settings"))}
        <div class="dialog-body">
          <label for="settings-name">${i("Name")}</label>
          <input
            class="field"
            id="settings-name"
            name="title"
            maxlength="200"
            autocomplete="off"
            dir="auto"
            .value=${t.title}
            placeholder=${f.nameOf(t)}
            ?disabled=${s}
          />
          <label for="settings-about">${i("Description")}</label>
          <textarea
            class="field"
            id="settings-about"
            name="description"
            maxlength="2000"
            rows="3"
            dir="auto"
            .value=${t.description??""}
            ?disabled=${s}
          ></textarea>
          ${s?r`<p class="quiet">
                  ${t.home?u(i("The name, description and picture are changed on %(server)s."),{server:t.home}):i("Only owners and admins can change the name, description and picture.")}
                </p>`:this._picture(t)}
          ${e("rule")?r`<label for="settings-hops"
                    >${i("Max. agent-to-agent answers in a row (0 = off)")}</label
                  >
                  <input
                    class="field"
                    id="settings-hops"
                    name="agent_hops"
                    type="number"
                    min="0"
                    max="20"
                    required
                    .value=${String(t.agent_hops??0)}
                  />`:""}
          ${t.home?"":r`<label class="picker-option"
                  ><span class="picker-text"
                    ><b>${i("Paused agents")}</b
                    ><small>${i("No agent answers until a member resumes them")}</small></span
                  >
                  <input type="checkbox" name="agents_quiet" .checked=${t.agents_quiet}
                /></label>`}
          <h3>${i("Only for me")}</h3>
          <label class="picker-option"
            ><span class="picker-text"
              ><b>${i("Mute for me")}</b
              ><small
                >${i("No notifications, and unread messages stay grey unless they mention you. Others can't see this.")}</small
              ></span
            >
            <input type="checkbox" name="muted" .checked=${t.muted}
          /></label>
          <label for="settings-level">${i("Notify me about")}</label>
          <select class="field" id="settings-level" name="notifications">
            ${Object.entries(Ni).map(([n,a])=>r`<option value=${n} ?selected=${n===t.notifications}>
                  ${a}
                </option>`)}
          </select>
        </div>
        <footer>
          ${this._problem()}
          <button type="button" class="button" @click=${()=>this._close()}>
            ${i("Cancel")}
          </button>
          <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
            ${i("Save")}
          </button>
        </footer>
      </form>
    </dialog>`}_picture(t){let{_avatar:e}=this,s=e.startsWith("#"),n=e&&!s&&!e.startsWith("content:")?e:"",a=e?Ie({avatar:e,avatar_url:this._address}):{};return r`<div class="profile-head">
        <span class="profile-face">${ut(f.nameOf(t),a,"chat",t.id)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._isBusy}
            @click=${()=>this.querySelector("input[type=file]").click()}
          >
            ${i("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="chat-picture-input"
            @change=${this._upload}
          />
          ${e?r`<button
                  type="button"
                  class="button button-quiet"
                  @click=${()=>{this._avatar=""}}
                >
                  ${i("Use the automatic icon")}
                </button>`:""}
        </div>
      </div>
      <label for="settings-avatar">${i("Use an emoji as the icon")}</label>
      <input
        class="field"
        id="settings-avatar"
        maxlength="32"
        autocomplete="off"
        .value=${n}
        placeholder=${i("Automatic")}
        @input=${l=>{this._avatar=l.target.value.trim()}}
      />
      ${yt("chat_colour",s?e:"",l=>{this._avatar=l})}`}async _upload(t){let e=t.target,[s]=e.files??[];e.value="",s&&await this._attempt(async()=>{let n=await wt(s),a=await _.upload(new File([n],s.name,{type:n.type}),()=>{}).done;this._avatar=`content:${a.content_id}`,this._address=a.url})}async _save(t,e){t.preventDefault();let s=`/chats/${encodeURIComponent(e.id)}`,n=new FormData(t.target),a=y=>n.has(y)?String(n.get(y)).trim():void 0,l=n.get("agent_hops"),c={agents_quiet:e.home?void 0:n.has("agents_quiet"),avatar:this._avatar,title:a("title"),description:a("description"),agent_hops:l===null?void 0:Number(l)},h={...e},p=Object.fromEntries(Object.entries(c).filter(([y,w])=>w!==void 0&&w!==(h[y]??""))),g={muted:n.has("muted"),notifications:n.get("notifications")};await this._attempt(async()=>{Object.keys(p).length&&await _.send("PATCH",s,p),(g.muted!==e.muted||g.notifications!==e.notifications)&&await _.send("PUT",`${s}/mute`,g),await f.reload(e.id),this._close(),v(i("Saved."))})}};customElements.define("chat-settings-dialog",Kt);var zt={member:i("Member"),admin:i("Admin"),owner:i("Owner")},Yt=o=>u(S("%(n)s day","%(n)s days",o),{n:o}),$s=o=>u(S("%(n)s person","%(n)s people",o),{n:o});function vs({role:o,used_count:t=0,most_uses:e}){let s=e?u(i("%(used)s of %(most)s joined"),{used:t,most:e}):u(i("%(used)s joined"),{used:t});return o&&o!=="member"?`${s} · ${zt[o]}`:s}function ks({opened_count:o=0,grows:t}){let e=u(S("Opened %(n)s time","Opened %(n)s times",o),{n:o});return t?`${e} · ${i("later messages too")}`:e}var xs={invite:{path:"invite-links",right:"add_members"},share:{path:"share-links",right:"share"}},Li={markdown:[i("Markdown"),i("to read")],json:[i("JSON"),i("one document, for programs")],ndjson:[i("NDJSON"),i("one line per message, for long chats")]},Es=[1,7,30],Di=[1,10,100],Gt=class extends b{static properties={_chat:{state:!0},_links:{state:!0},_made:{state:!0},_error:{state:!0},_busy:{state:!0},_copied:{state:!0}};constructor(){super(),this._chat=void 0,this._made=null,this._links={invite:[],share:[]},this._error="",this._busy=this._copied=!1}async open(t){Object.assign(this,{_chat:t,_links:{invite:[],share:[]},_made:null,_error:"",_busy:!1,_copied:!1}),await this.updateComplete,this.querySelector("dialog")?.showModal(),await this._do(()=>this._read())}render(){let t=this._chat;if(!t)return r`<dialog class="dialog"></dialog>`;let e=s=>t.rights.includes(xs[s].right);return r`<dialog
      class="dialog links-dialog"
      aria-labelledby="links-title"
      data-testid="links-dialog"
    >
      <div class="dialog-form">
        <header>
          <h2 id="links-title">${i("Invite, share, download")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${i("Close")}
            title=${i("Close")}
            @click=${this._close}
          >
            ${m("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${this._error?r`<p class="dialog-error" role="alert">${this._error}</p>`:d}
          ${t.home?d:r`<section aria-labelledby="links-invite">
                    <h3 id="links-invite">${i("Invite by a link")}</h3>
                    <p class="quiet">
                      ${i("Anyone who signs in can join this chat with the link.")}
                    </p>
                    ${e("invite")?this._inviteForm(t):d}${this._list("invite")}
                  </section>
                  <section aria-labelledby="links-share">
                    <h3 id="links-share">${i("Public read-only link")}</h3>
                    <p class="quiet">
                      ${i("Anyone with the link can read the messages without signing in. All members can see that the link exists.")}
                    </p>
                    ${e("share")?this._shareForm():r`<p class="quiet">
                            ${i("Only owners and admins can create these links.")}
                          </p>`}${this._list("share")}
                  </section>`}
          <section aria-labelledby="links-file">
            <h3 id="links-file">${i("Download the chat")}</h3>
            <ul class="download-list">
              ${Object.entries(Li).map(([s,[n,a]])=>r`<li>
                    <a
                      class="button"
                      href="/api/v1/chats/${encodeURIComponent(t.id)}/export?format=${s}"
                      download
                      data-testid="export-${s}"
                      >${m("down")}${n}</a
                    >
                    <span class="quiet">${a}</span>
                  </li>`)}
            </ul>
          </section>
        </div>
      </div>
    </dialog>`}_inviteForm(t){let e=t.participants.find(({kind:n,id:a})=>n==="user"&&String(a)===x.id)?.role,s=e==="owner"?["member","admin","owner"]:e==="admin"?["member","admin"]:["member"];return r`<form
        class="link-form"
        @submit=${n=>this._make(n,"invite")}
      >
        ${this._choice("days",i("Ends after"),Es.map(n=>[n,Yt(n)]),7)}
        ${this._choice("most_uses",i("Max. uses"),[["",i("Unlimited")],...Di.map(n=>[n,$s(n)])],"")}
        ${s.length>1?this._choice("role",i("Role"),s.map(n=>[n,zt[n]]),"member"):d}
        <button type="submit" class="button" data-testid="make-invite" ?disabled=${this._busy}>
          ${m("link")}${i("Create invite link")}
        </button>
      </form>
      ${this._address("invite")}`}_shareForm(){return r`<form
        class="link-form"
        @submit=${t=>this._make(t,"share")}
      >
        ${this._choice("days",i("Ends after"),Es.map(t=>[t,Yt(t)]),7)}
        ${this._choice("grows",i("Show"),[["",i("messages so far")],["1",i("later messages too")]],"")}
        <button type="submit" class="button" data-testid="make-share" ?disabled=${this._busy}>
          ${m("link")}${i("Create public link")}
        </button>
      </form>
      ${this._address("share")}`}_choice(t,e,s,n){return r`<label
      >${e}
      <select class="field" name=${t}>
        ${s.map(([a,l])=>r`<option value=${a} ?selected=${a===n}>${l}</option>`)}
      </select></label
    >`}_address(t){return this._made?.kind!==t?d:r`<div class="link-address" role="status">
      <label
        >${i("Copy this link now. You won't be able to see it again.")}
        <input
          class="field"
          readonly
          .value=${this._made.url}
          data-testid="link-address"
          @focus=${e=>e.target.select()}
      /></label>
      <button
        type="button"
        class="button button-primary"
        data-testid="copy-link"
        @click=${this._copy}
      >
        ${m(this._copied?"check":"copy")}${this._copied?i("Copied"):i("Copy")}
      </button>
    </div>`}_list(t){let e=this._links[t].filter(({state:s})=>s==="active");return e.length===0?d:r`<ul class="link-list" data-testid="${t}-links">
      ${e.map(s=>r`<li>
            <span class="picker-text"
              ><b dir="auto"
                >${u(i("By %(name)s, until %(day)s"),{name:M.nameOf(s.created_by),day:Re(Date.parse(s.expires_at))})}</b
              >
              <small>${t==="invite"?vs(s):ks(s)}</small></span
            >
            ${this._mayRevoke(t,s)?r`<button
                    type="button"
                    class="button"
                    ?disabled=${this._busy}
                    @click=${()=>this._revoke(t,s)}
                  >
                    ${i("Revoke")}
                  </button>`:d}
          </li>`)}
    </ul>`}_mayRevoke(t,e){return this._chat?.rights.includes("share")||t==="invite"&&e.created_by===x.username}async _make(t,e){t.preventDefault();let s=new FormData(t.target),n={days:Number(s.get("days"))};s.get("most_uses")&&(n.most_uses=Number(s.get("most_uses"))),s.get("role")&&(n.role=s.get("role")),e==="share"&&(n.grows=!!s.get("grows")),await this._do(async()=>{let a=await _.post(this._path(e),n);this._made={kind:e,id:a.id,url:a.url},this._copied=!1,await this._read(),await this.updateComplete,this.querySelector(".link-address input")?.focus()})}async _revoke(t,e){await this._do(async()=>{await _.send("DELETE",`${this._path(t)}/${e.id}`),this._made?.id===e.id&&this._made.kind===t&&(this._made=null),await this._read(),v(i("The link no longer works."))}),this.querySelector("dialog .icon-button")?.focus()}async _copy(){this._copied=await pt(this._made?.url??""),v(this._copied?i("Copied"):i("Couldn't copy. The address is selected.")),this._copied||this.querySelector(".link-address input")?.select()}async _read(){let[t,e]=await Promise.all([_.get(this._path("invite")),_.get(this._path("share"))]);this._links={invite:t.data,share:e.data}}_path(t){return`/chats/${encodeURIComponent(this._chat?.id??"")}/${xs[t].path}`}_close(){this.querySelector("dialog")?.close()}async _do(t){this._error="",this._busy=!0;try{await t()}catch(e){if(!$(e))throw e;this._error=e.message}finally{this._busy=!1}}};customElements.define("links-dialog",Gt);var Pi=[1,4,8,10,13],ji=[3,10,11,15],Ui=[3,10],Fi=[0,1,4,8,16,17,19,20,21],Xt={label:"windows-1252",name:"Windows-1252"},Bi=/(?<!\p{Script=Cyrillic})[\u0410-\u042F\u0401]?(?:[\u0430-\u044F\u0451]{2,}|[\u0410-\u042F\u0401]+)(?!\p{Script=Cyrillic})/gu;function Jt(o,t,e=()=>!1){let s=0,n=0;for(let a=0;a<o.length;a+=1){let l=o[a];l<128||(s+=1,e(l)?n+=.6:(a+=1,t(l,o[a])&&(n+=1)))}return{all:s,share:s?n/s:0}}var W=(o,t,e)=>o>=t&&o<=e;function Hi(o){let t=[...o].filter(s=>s>""),e=t.filter(s=>{let n=(s.codePointAt(0)||0)-44032;if(n<0||n>=11172)return/[\u3000-\u303f\uff01-\uff5e]/.test(s);let[a,l,c]=[Math.floor(n/588),Math.floor(n%588/28),n%28];return ji.includes(l)||Pi.includes(a)?(c===0||c===4)&&!Ui.includes(l):Fi.includes(c)});return t.length?e.length/t.length:0}function Vi(o){let t=!0,e=Jt(o,(s,n)=>(s>200&&(t=!1),(W(s,176,215)||W(s,161,163))&&n>=161));return t&&e.all>=12?e.share*.9:e.share}function Wi(o){let t=0,e=0,s=0;for(let n=0;n<=o.length;n+=1)o[n]>=128?s+=1:(t+=s,s<=2&&(e+=s),s=0);return t?e/t:0}var Ki=[{label:"shift_jis",name:"Shift-JIS",likeness:o=>Jt(o,t=>W(t,129,131)||W(t,136,152),t=>W(t,161,223)).share},{label:"euc-kr",name:"EUC-KR",likeness:(o,t)=>Hi(t)},{label:"gb18030",name:"GBK",likeness:Vi},{label:"big5",name:"Big5",likeness:o=>Jt(o,t=>W(t,161,163)||W(t,164,198)).share},{...Xt,likeness:Wi},{label:"windows-1251",name:"Windows-1251",likeness:(o,t)=>(t.match(Bi)||[]).join("").length/(o.filter(e=>e>=128).length||1)}];function Zt(o,t){try{return new TextDecoder(t,{fatal:!0}).decode(o,{stream:!0})}catch{return null}}function Ss(o){let t=new Uint8Array(o),e=t[0]===255&&t[1]===254?"utf-16le":t[0]===254&&t[1]===255?"utf-16be":"utf-8",s=Zt(t,e);if(s!==null&&!s.includes("\0"))return{text:s,encoding:""};if(t.includes(0)){let h=["utf-16le","utf-16be"].map(p=>Zt(t,p)).find(p=>p!==null&&!p.includes("\0")&&/[,;\t|\n]/.test(p));if(h)return{text:h,encoding:"UTF-16"}}let a=Ki.flatMap(({label:h,name:p,likeness:g})=>{let y=Zt(t,h);return y===null?[]:[{text:y,encoding:p,likeness:g(t,y)}]}).reduce((h,p)=>p.likeness>h.likeness?p:h,{text:"",encoding:"",likeness:.6-Number.EPSILON}),{text:l,encoding:c}=a.encoding?a:{text:new TextDecoder(Xt.label).decode(t),encoding:Xt.name};return{text:l,encoding:c}}var Cs=300,zi=4e3,Yi=4e7,Gi={PasswordException:()=>i("This file is password-protected. Download it to open it."),ResponseException:()=>i("This file can no longer be read.")},Qt=o=>String(new URL(`../vendor/${o}`,import.meta.url)),As=null;async function Zi(){try{let o=await import("../vendor/pdf/pdf.js");return o.GlobalWorkerOptions.workerSrc=Qt("pdf-worker/pdf-worker.js"),o}catch(o){throw As=null,o}}var te=class extends b{static properties={src:{},width:{type:Number},_sheets:{state:!0},_problem:{state:!0},_isCut:{state:!0}};constructor(){super(),this.src="",this.width=1,this._sheets=null,this._problem="",this._isCut=!1,this._task=null,this._document=null,this._observer=null,this._near=new Set}disconnectedCallback(){super.disconnectedCallback(),this._close()}willUpdate(t){t.has("src")&&this._open(this.src)}updated(t){if(t.has("_sheets")&&this._sheets&&!this._observer)this._observe();else if(t.has("width"))for(let e of this._near)this._draw(e)}render(){if(this._problem)return r`<p class="dialog-error" role="alert">${this._problem}</p>`;let t=this._sheets;if(!t)return L(i("Loading"));let e=this._document?.numPages??t.length;return r`${this._isCut?r`<p class="viewer-note">
            ${i("This is the beginning of the file. Download it to read the rest.")}
          </p>`:d}
    ${t.map((s,n)=>{let a=u(i("Page %(n)s of %(count)s"),{n:n+1,count:e});return r`<figure
        class="pdf-page"
        data-at=${n}
        .style=${`--width: ${this.width}; --ratio: ${s.ratio}`}
      >
        <canvas
          role="img"
          aria-label=${a}
          aria-hidden=${s.problem?"true":"false"}
        ></canvas>
        <figcaption>
          ${a}${s.problem?r`<p class="dialog-error">${s.problem}</p>`:d}
        </figcaption>
        <p class="visually-hidden" dir="auto">${s.text}</p>
      </figure>`})}`}async _open(t){if(this._close(),this._problem="",this._sheets=null,!!t)try{let{getDocument:e}=await(As||=Zi());if(this.src!==t||!this.isConnected)return;this._task=e({url:t,cMapUrl:Qt("pdf-worker/cmaps/"),wasmUrl:Qt("pdf-worker/pictures/"),useWasm:!1,useWorkerFetch:!0,enableXfa:!1,disableAutoFetch:!0,disableStream:!0,maxImageSize:Yi,verbosity:0});let s=await this._task.promise,n=(await s.getPage(1)).getViewport({scale:1});if(this.src!==t||!this.isConnected)return;this._document=s,this._isCut=s.numPages>Cs,this._sheets=Array.from({length:Math.min(s.numPages,Cs)},()=>({ratio:n.height/n.width,text:"",problem:"",drawing:null}))}catch(e){this.src===t&&this.isConnected&&(this._problem=Ji(e))}}_close(){this._observer?.disconnect(),this._observer=null,this._near.clear(),this._document=null,this._task?.destroy(),this._task=null}_observe(){this._observer=new IntersectionObserver(t=>{for(let{target:e,isIntersecting:s}of t){let n=Number(e.dataset.at);s?this._near.add(n):this._near.delete(n),s?this._draw(n):this._release(n)}},{root:this.closest(".viewer-place"),rootMargin:"60%"});for(let t of this.querySelectorAll("figure"))this._observer.observe(t)}_canvas(t){return this.querySelectorAll("canvas")[t]}async _draw(t){let e=this._sheets?.[t],s=this._document;if(!(!e||!s))try{let n=await s.getPage(t+1);if(this._document!==s||!this._near.has(t))return;let a=n.getViewport({scale:1});e.ratio=a.height/a.width,this.requestUpdate(),await this.updateComplete,await this._paint(e,n,t),e.text||=await Qi(n),this.requestUpdate()}catch(n){if(this._document!==s||Xi(n))return;e.problem=i("This page can't be displayed."),this.requestUpdate()}}async _paint(t,e,s){if(!this._near.has(s))return;let n=this._canvas(s),a=e.getViewport({scale:1}),l=n.clientWidth*devicePixelRatio/a.width,c=e.getViewport({scale:Math.min(l,zi/Math.max(a.width,a.height))});if(n.width===Math.floor(c.width)&&!t.drawing)return;t.drawing?.cancel();let h=document.createElement("canvas");Object.assign(h,{width:Math.floor(c.width),height:Math.floor(c.height)});let p=e.render({canvas:h,viewport:c});t.drawing=p;try{await p.promise}finally{t.drawing===p&&(t.drawing=null)}this._near.has(s)&&(Object.assign(n,{width:h.width,height:h.height}),n.getContext("2d")?.drawImage(h,0,0),h.width=0)}_release(t){this._sheets?.[t]?.drawing?.cancel(),this._canvas(t).width=0}};customElements.define("pdf-pages",te);var Xi=o=>o instanceof Error&&o.name==="RenderingCancelledException";function Ji(o){let t=o instanceof Error?o.name:"";return Gi[t]?.()??i("No preview for this file. Download it to open it.")}async function Qi(o){let{items:t}=await o.getTextContent();return t.map(e=>"str"in e?e.str+(e.hasEOL?`
`:""):"").join("")}var $t=[1,1.5,2,3,5],ee=class extends b{static properties={_medium:{state:!0},_pictures:{state:!0},_at:{state:!0},_step:{state:!0},_preview:{state:!0}};constructor(){super(),this._medium=null,this._pictures=[],this._at=-1,this._step=0,this._preview=null,this._opener=null}connectedCallback(){super.connectedCallback(),addEventListener("view-media",t=>{let{target:e,detail:s}=t;this.open(e,s)})}async open(t,e){this._opener=t;let s=Array.from(document.querySelectorAll(".log a.media-image"));this._pictures=e.kind==="image"?s.map(n=>({kind:"image",url:n.getAttribute("href")??"",name:n.dataset.name??"",shown:n.dataset.shown})):[],this._at=s.indexOf(t),this._show(e),await this.updateComplete,this._dialog.showModal(),this._place.focus()}get _dialog(){return this.querySelector("dialog")}get _place(){return this.querySelector(".viewer-place")}render(){let t=this._medium;return r`<dialog
      class="dialog viewer"
      aria-labelledby="viewer-title"
      data-testid="viewer"
      @keydown=${e=>this._key(e)}
      @close=${()=>this._closed()}
    >
      <header>
        <h2 id="viewer-title" dir="auto">${t?.name}</h2>
        ${t?this._tools(t):d}
        <button
          type="button"
          class="icon-button"
          aria-label=${i("Close")}
          title=${i("Close")}
          @click=${()=>this._dialog.close()}
        >
          ${m("close")}
        </button>
      </header>
      <div
        class="viewer-place ${t?`is-${t.kind}`:""}"
        tabindex="0"
        role="group"
        aria-labelledby="viewer-title"
      >
        ${t?this._content(t):d}
      </div>
    </dialog>`}_tools({kind:t,url:e,name:s}){let n=t==="image",a=n||t==="pdf",l=n&&this._pictures.length>1&&this._at>=0,c=l?u(i("%(n)s of %(count)s"),{n:this._at+1,count:this._pictures.length}):"";return r`<span class="viewer-count" role="status">${c}</span>
      ${this._tool("back",i("Previous picture"),l,this._at<=0,()=>this._go(-1))}${this._tool("next",i("Next picture"),l,this._at>=this._pictures.length-1,()=>this._go(1))}
      ${this._tool("zoomOut",i("Zoom out"),a,this._step===0,()=>this._zoom(-1))}${this._tool("zoomIn",i("Zoom in"),a,this._step===$t.length-1,()=>this._zoom(1))}
      <a class="button" href=${e} download=${s}>${i("Download")}</a>`}_tool(t,e,s,n,a){return r`<button
      type="button"
      class="icon-button"
      aria-label=${e}
      title=${e}
      ?hidden=${!s}
      ?disabled=${n}
      @click=${a}
    >
      ${m(t)}
    </button>`}_content({kind:t,url:e,name:s,shown:n=e}){if(t==="image")return r`<img
        class=${this._step?"is-large":""}
        src=${n}
        alt=${s}
        .style=${this._step?`width: ${100*$t[this._step]}%`:""}
        @click=${()=>this._setZoom(this._step===0?2:0)}
      />`;if(t==="pdf")return r`<pdf-pages .src=${e} .width=${$t[this._step]}></pdf-pages>`;let a=this._preview;return a?a.problem?r`<p class="dialog-error" role="alert">${a.problem}</p>`:a.note?r`<p>${a.note}</p>`:r`${a.isPart?r`<p class="viewer-note">
            ${i("This is the beginning of the file. Download it to read the rest.")}
          </p>`:d}${a.encoding?r`<p class="viewer-note" data-testid="encoding">
            ${u(i("Read as %(encoding)s. If letters look wrong, save the file as UTF-8."),{encoding:a.encoding})}
          </p>`:d}${a.rows?en(a.rows):r`<pre dir="auto">${a.text}</pre>`}`:L(i("Loading"))}_show(t){this._medium=t,this._step=0,this._preview=null,(t.kind==="text"||t.kind==="table")&&this._read(t)}async _read(t){let e;try{e=await sn(t)}catch(s){if(!(s instanceof TypeError))throw s;e={problem:i("Couldn't reach the server. Close this and try again.")}}this._medium===t&&(this._preview=e)}_setZoom(t){this._step=Math.max(0,Math.min($t.length-1,t))}_zoom(t){this._setZoom(this._step+t)}async _go(t){let e=this._at+t;if(!this._pictures[e])return;this._at=e,this._show(this._pictures[e]),await this.updateComplete;let s=document.activeElement;this._dialog.contains(s)&&!(s instanceof HTMLButtonElement&&s.disabled)||this._place.focus()}_key(t){if(!["image","pdf"].includes(this._medium?.kind??"")||t.ctrlKey||t.metaKey||t.altKey)return;let e={"+":()=>this._zoom(1),"=":()=>this._zoom(1),"-":()=>this._zoom(-1),0:()=>this._setZoom(0)},s=getComputedStyle(this).direction==="rtl"?-1:1;this._medium?.kind==="image"&&this._step===0&&Object.assign(e,{ArrowLeft:()=>this._go(-s),ArrowRight:()=>this._go(s)}),e[t.key]&&(t.preventDefault(),e[t.key]())}_closed(){this._medium=null,this._opener?.focus()}};customElements.define("media-viewer",ee);function en([o=[],...t]){return r`<table>
    <thead>
      <tr>
        ${o.map(e=>r`<th scope="col" dir="auto">${e}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${t.map(e=>r`<tr>
            ${e.map(s=>r`<td dir="auto">${s}</td>`)}
          </tr>`)}
    </tbody>
  </table>`}async function sn({url:o,kind:t}){let e=await fetch(o,{headers:{Range:`bytes=0-${199999}`}});if(e.status===416)return{note:i("This file is empty.")};if(!e.ok)return{problem:i("This file can no longer be read.")};let{text:s,encoding:n}=Ss(await e.arrayBuffer()),a=e.status===206;if(s.includes("\0"))return{note:i("This isn't a text file. Download it to open it.")};if(t==="text")return{text:s,encoding:n,isPart:a};let{rows:l,isCut:c}=Xe(s);return{rows:l,encoding:n,isPart:a||c}}var nn={owner:[i("Owner"),i("Full control, including roles, billing and budgets")],admin:[i("Admin"),i("Can rename the chat, remove members and configure agents")],member:[i("Member"),i("Can write, and add people and agents")]},on={mention:i("when mentioned"),always:i("every message"),keyword:i("a mention or a keyword"),never:i("never")},an={chat:i("all messages of the chat"),last:i("the last messages"),addressed:i("only messages addressed to it and its answers")},rn={day:i("each day"),total:i("in total")},ln=(o,t,e)=>r`<option value=${o} ?selected=${o===e}>${t}</option>`,se=(o,t)=>Object.entries(o).map(([e,s])=>ln(e,s,t)),ie=class extends C{static properties={_chat:{state:!0},_member:{state:!0},_trigger:{state:!0},_context:{state:!0},_confirms:{state:!0}};constructor(){super(),this._chat=null,this._member=null,this._trigger=void 0,this._context=void 0,this._confirms=!1}async open(t,e){Object.assign(this,{_chat:t,_member:e,_trigger:e.trigger,_context:e.context,_confirms:!1}),await this._show()}render(){let{_member:t,_chat:e}=this;if(!t||!e)return r`<dialog class="dialog"></dialog>`;let s=c=>e.rights.includes(c),n=t.kind==="agent",a=!n&&String(t.id)===x.id,l=n?s("manage_agents")||s("manage_money"):s("change_roles");return r`<dialog class="dialog" aria-labelledby="member-title" data-testid="member-dialog">
      <form
        class="dialog-form"
        @submit=${c=>this._save(c,e,t)}
      >
        ${this._head("member-title",t.name)}
        <div class="dialog-body">
          ${n?this._agent(t,s):this._person(t,s)}
        </div>
        <footer>
          ${this._problem()}
          ${a||s("remove_members")?this._removal(e,t,a):""}
          ${n||a||f.directWith(t.name)?.id===e.id?"":r`<button
                  type="button"
                  class="button"
                  data-testid="message-member"
                  ?disabled=${this._isBusy}
                  @click=${()=>this._message(t)}
                >
                  ${m("message")}${i("Message")}
                </button>`}
          <button type="button" class="button" @click=${()=>this._close()}>
            ${l?i("Cancel"):i("Close")}
          </button>
          ${l?r`<button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
                  ${i("Save")}
                </button>`:""}
        </footer>
      </form>
    </dialog>`}_removal(t,e,s){return this._confirms?r`<button
      type="button"
      class="button button-danger"
      data-testid="confirm-removal"
      @click=${()=>this._remove(t,e,s)}
    >
      ${s?i("Leave now"):u(i("Remove %(name)s now"),{name:e.name})}
    </button>`:r`<button
        type="button"
        class="button is-danger"
        data-testid="remove-member"
        @click=${()=>{this._confirms=!0}}
      >
        ${s?i("Leave chat"):i("Remove")}
      </button>`}_person(t,e){let s=Object.entries(nn).map(([n,[a,l]])=>r`<label class="picker-option">
          <span class="picker-text"><b>${a}</b><small>${l}</small></span>
          <input
            type="radio"
            name="role"
            value=${n}
            ?checked=${n===t.role}
            ?disabled=${!e("change_roles")}
        /></label>`);return r`<fieldset class="payers">
        <legend class="visually-hidden">${i("Role")}</legend>
        ${s}
      </fieldset>
      ${e("change_roles")||this._chat?.home?"":r`<p class="quiet">${i("Only owners can change roles.")}</p>`}`}_agent(t,e){let s=!e("manage_agents");return r` <label for="member-trigger">${i("Answers")}</label>
      <select
        class="field"
        id="member-trigger"
        name="trigger"
        ?disabled=${s}
        @change=${n=>{this._trigger=n.target.value}}
      >
        ${se(on,t.trigger)}
      </select>
      ${this._trigger==="keyword"?r`<label for="member-keywords">${i("Keywords, separated by commas")}</label>
              <input
                class="field"
                id="member-keywords"
                name="keywords"
                maxlength="600"
                required
                autocomplete="off"
                .value=${(t.keywords??[]).join(", ")}
                ?disabled=${s}
              />`:""}
      <label for="member-context">${i("Can see")}</label>
      <select
        class="field"
        id="member-context"
        name="context"
        ?disabled=${s}
        @change=${n=>{this._context=n.target.value}}
      >
        ${se(an,t.context)}
      </select>
      ${this._context==="last"?r`<label for="member-messages">${i("Number of messages")}</label>
              <input
                class="field"
                id="member-messages"
                name="context_messages"
                type="number"
                min="1"
                max="1000"
                required
                .value=${String(t.context_messages||20)}
                ?disabled=${s}
              />`:""}
      ${t.pricing?this._budget(t,e("manage_money")):""}
      ${s?r`<p class="quiet">${i("Only owners and admins can configure agents.")}</p>`:""}`}_budget(t,e){return r`<label for="member-budget"
        >${u(i("Budget for its answers in this chat (%(currency)s)"),{currency:t.pricing?.currency??""})}</label
      >
      <div class="pool-fill">
        <input
          class="field"
          id="member-budget"
          name="budget"
          inputmode="decimal"
          maxlength="20"
          autocomplete="off"
          placeholder=${i("No limit")}
          .value=${t.budget?lt(t.budget):""}
          ?disabled=${!e}
        />
        <select
          class="field"
          name="budget_period"
          aria-label=${i("Budget period")}
          ?disabled=${!e}
        >
          ${se(rn,t.budget_period||"day")}
        </select>
      </div>`}_save(t,e,s){t.preventDefault();let n=new FormData(t.target),a=Object.fromEntries(n);return n.has("keywords")&&(a.keywords=String(n.get("keywords")).split(",").map(l=>l.trim()).filter(Boolean)),n.has("context_messages")&&(a.context_messages=Number(n.get("context_messages"))),n.has("budget")&&(a.budget=ct(String(n.get("budget")))),this._attempt(async()=>{await _.send("PATCH",Os(e,s),a),this._done(u(i("%(name)s updated."),{name:s.name})),await f.reload(e.id)})}_message(t){return this._attempt(async()=>{let e=await f.message(t.name);this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:e.id}))})}_remove(t,e,s){return this._attempt(async()=>{await _.send("DELETE",Os(t,e)),this._done(s?i("You left the chat."):u(i("%(name)s removed."),{name:e.name})),s?(this.dispatchEvent(new CustomEvent("left-chat",{bubbles:!0,detail:t.id})),await f.refresh()):await f.reload(t.id)})}_done(t){this._close(),v(t)}};customElements.define("member-dialog",ie);var Os=(o,t)=>`/chats/${encodeURIComponent(o.id)}/participants/${t.participant_id}`;var cn=2e3,ne=class extends b{static properties={label:{attribute:!1},text:{attribute:!1},_isCopied:{state:!0}};constructor(){super(),this.label="",this.text="",this._isCopied=!1,this._timer=0}render(){return navigator.clipboard?r`<button
        type="button"
        class="button copy"
        data-testid="copy"
        @click=${()=>this._copy()}
      >
        ${this._isCopied?i("Copied"):this.label}
      </button>
      <span class="visually-hidden" role="status"
        >${this._isCopied?i("Copied."):""}</span
      >`:d}async _copy(){await navigator.clipboard.writeText(this.text),this._isCopied=!0,clearTimeout(this._timer),this._timer=window.setTimeout(()=>{this._isCopied=!1},cn)}};customElements.define("copy-button",ne);var oe=class extends b{static properties={label:{attribute:!1},tabs:{attribute:!1},chosen:{attribute:!1}};constructor(){super(),this.label="",this.tabs=[],this.chosen=""}render(){return r`<div
      role="tablist"
      class="tabs"
      aria-label=${this.label}
      @keydown=${t=>this._key(t)}
    >
      ${this.tabs.map(({name:t,panel:e})=>{let s=t===this.chosen;return r`<button
          type="button"
          role="tab"
          class="tab"
          id="tab-${e}"
          aria-controls=${e}
          aria-selected=${String(s)}
          tabindex=${s?0:-1}
          @click=${()=>this._choose(t)}
        >
          ${t}
        </button>`})}
    </div>`}focus(){this.querySelector("[aria-selected=true]")?.focus()}async _key(t){let e=this.tabs.findIndex(({name:a})=>a===this.chosen),s=getComputedStyle(this).direction==="rtl"?-1:1,n={ArrowRight:e+s,ArrowLeft:e-s,Home:0,End:this.tabs.length-1}[t.key];n!==void 0&&(t.preventDefault(),this._choose(this.tabs[(n+this.tabs.length)%this.tabs.length].name),await this.updateComplete,this.focus())}_choose(t){this.chosen=t,this.dispatchEvent(new CustomEvent("choose-tab",{bubbles:!0,detail:t}))}};customElements.define("tab-list",oe);var hn=o=>o.map(t=>JSON.stringify(t,null,2)).join(`

`),ae=class extends C{static properties={_protocols:{state:!0},_chosen:{state:!0}};constructor(){super(),this._protocols=null,this._chosen=""}async open(t){this._protocols=null,await this._show(),await this._attempt(async()=>{let{protocols:s}=await _.get(`/messages/${encodeURIComponent(t.id)}/frames`);this._protocols=s,this._chosen=s[0]?.label??""});let e=this.querySelector("tab-list");await e?.updateComplete,e?.focus()}render(){return r`<dialog
      class="dialog is-wide"
      aria-labelledby="console-title"
      data-testid="console"
    >
      <div class="dialog-form">
        ${this._head("console-title",i("View as…"))}
        <div class="dialog-body message-console">${this._body()}</div>
      </div>
    </dialog>`}_body(){let t=this._protocols;if(this._error)return this._problem();if(!t)return L(i("Loading"));let e=t.map(({key:s,label:n})=>({name:n,panel:`frames-${s}`}));return r`<tab-list
        .label=${i("Protocol")}
        .tabs=${e}
        .chosen=${this._chosen}
        @choose-tab=${s=>{this._chosen=s.detail}}
      ></tab-list>
      ${t.map(s=>this._panel(s))}`}_panel({key:t,label:e,title:s,frames:n,is_cut:a,call:l}){let c=hn(n);return r`<div
      class="message-console"
      role="tabpanel"
      id="frames-${t}"
      aria-labelledby="tab-frames-${t}"
      data-protocol=${t}
      ?hidden=${e!==this._chosen}
    >
      <p class="quiet">
        ${n.length?s:u(i("%(title)s: no frames are stored for this message."),{title:s})}
      </p>
      ${n.length?r`<pre
              class="code-view"
              tabindex="0"
              aria-label=${u(i("Frames of %(label)s"),{label:e})}
              data-testid="frames"
            >
${c}</pre>`:d}
      ${a?r`<p class="quiet">${i("The message is long; the rest is omitted.")}</p>`:d}
      <div class="approval-form">
        ${n.length?r`<copy-button .label=${i("Copy frames")} .text=${c}></copy-button>`:d}${l?r`<copy-button .label=${i("Copy as curl")} .text=${l.curl}></copy-button>`:d}
      </div>
      ${l?r`<p class="quiet">
              ${l.in_chat?i("This call repeats the request in this chat, with your key in $KEY."):i("This call repeats the request in a new conversation, with your key in $KEY.")}
            </p>`:d}
    </div>`}};customElements.define("message-console",ae);var dn=200,Ts={choices:[],error:""},re=class extends b{static properties={taken:{attribute:!1},_people:{state:!0},_agents:{state:!0},_wanted:{state:!0}};constructor(){super(),this.taken=new Set,this._chosen=new Map,this._people=null,this._agents=null,this._wanted="",this._timer=0}connectedCallback(){super.connectedCallback(),this._readPeople(),this._readAgents()}chosen(t){return Array.from(this._chosen.values()).filter(e=>e.kind===t).map(({name:e})=>e)}get _search(){return this.querySelector("input[type=search]")}render(){let t=this._free(this._agents??Ts),e=T(this._wanted),s=c=>T(c||"").includes(e),n=this._withAddress(this._free(this._people??Ts)),a=t.filter(({name:c,description:h})=>s(c)||s(h)),l=a.length===t.length?String(t.length):u(i("%(n)s of %(count)s"),{n:a.length,count:t.length});return r`<div class="picker">
      <label for="picker-search">${i("Find people and agents")}</label>
      <input
        type="search"
        class="field"
        id="picker-search"
        placeholder=${i("Search by name")}
        autocomplete="off"
        @input=${()=>this._written()}
      />
      <h3>${i("People")}</h3>
      ${this._list(i("People"),this._people,n,()=>this._readPeople())}
      <h3
        aria-label=${this._agents?u(i("Agents, %(count)s"),{count:l}):i("Agents")}
      >
        ${i("Agents")}<span class="picker-count">${this._agents?l:""}</span>
      </h3>
      ${this._list(i("Agents"),this._agents,a,()=>this._readAgents())}
      <a class="button button-quiet" href="/account/agents">${i("Connect your own agent")}</a>
    </div>`}_list(t,e,s,n){return r`<ul class="picker-list" aria-label=${t}>
      ${e?.error?r`<li class="picker-none">
              ${e.error}
              <button type="button" class="button" @click=${n}>${i("Try again")}</button>
            </li>`:e&&!s.length?r`<li class="picker-none">${i("No matches.")}</li>`:j(s,st,a=>this._option(a))}
    </ul>`}_option(t){let{kind:e,name:s,description:n,pricing:a}=t,l=st(t),c=Z(a);return r`<li>
      <label class="picker-option"
        >${N(s,e)}<span class="picker-text"
          ><b>${s}</b>${n?r`<small>${n}</small>`:d}${c?r`<small class="price">${c}</small>`:d}</span
        ><input
          type="checkbox"
          name=${l}
          .checked=${this._chosen.has(l)}
          @change=${h=>this._choose(t,h.target.checked)}
      /></label>
    </li>`}_withAddress(t){return/^[^\s@]+@[^\s@]+$/.test(this._wanted)&&!t.some(({name:s})=>s===this._wanted)?[...t,{kind:"user",name:this._wanted,description:i("On another server: will be invited")}]:t}_free({choices:t}){return t.filter(e=>!this.taken.has(st(e)))}_choose(t,e){e?this._chosen.set(st(t),t):this._chosen.delete(st(t))}_written(){clearTimeout(this._timer),this._timer=window.setTimeout(()=>{this._wanted=this._search.value.trim(),this._readPeople()},dn)}async _readPeople(){let t=this._wanted,e=await qs(`/users?q=${encodeURIComponent(t)}`,({username:s})=>({kind:"user",name:s}));t===this._wanted&&(this._people=e)}async _readAgents(){this._agents=await qs("/agents",t=>({...t,kind:"agent",description:G.agent_descriptions[t.description??""]??t.description}))}};customElements.define("people-picker",re);var st=({kind:o,name:t})=>`${o}:${t}`;async function qs(o,t){try{let{data:e}=await _.get(o);return{choices:e.map(t),error:""}}catch(e){if(!$(e))throw e;return{choices:[],error:e.message}}}var le=class extends C{static properties={_chat:{state:!0},_opened:{state:!0}};constructor(){super(),this._chat=null,this._opened=0}startChat(){return this._open(null)}addTo(t){return this._open(t)}async _open(t){this._chat=t,this._opened+=1,await this._show(),await this._picker.updateComplete,matchMedia("(pointer: fine)").matches&&this.querySelector(".dialog-body input").focus()}get _picker(){return this.querySelector("people-picker")}render(){return r`<dialog class="dialog" aria-labelledby="dialog-title" data-testid="new-chat-dialog">
      ${j(this._opened?[this._opened]:[],t=>t,()=>this._form())}
    </dialog>`}_form(){let t=this._chat,e=new Set(t?.participants.map(({kind:s,name:n})=>`${s}:${n}`));return r`<form
      class="dialog-form"
      @submit=${s=>this._submit(s)}
    >
      ${this._head("dialog-title",t?i("Add people or agents"):i("New chat"))}
      <div class="dialog-body">
        ${t?d:r`<label for="chat-name">${i("Name")}</label>
                <input
                  class="field"
                  id="chat-name"
                  maxlength="200"
                  autocomplete="off"
                  placeholder=${i("Optional")}
                />`}<people-picker .taken=${e}></people-picker>
      </div>
      <footer>
        ${this._problem()}<button type="button" class="button" @click=${()=>this._close()}>
          ${i("Cancel")}
        </button>
        <button type="submit" class="button button-primary" ?disabled=${this._isBusy}>
          ${t?i("Add"):i("Start chat")}
        </button>
      </footer>
    </form>`}_submit(t){t.preventDefault();let e=this._picker.chosen("user"),s=this._picker.chosen("agent");return this._attempt(async()=>{this._chat?await this._add(this._chat,e,s):await this._start(e,s),this._close()})}async _start(t,e){let s=this.querySelector("#chat-name").value.trim(),a=!s&&t.length===1&&e.length===0?await f.message(t[0]):await f.create(s,t,e);this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:a.id}))}async _add(t,e,s){let n=`/chats/${encodeURIComponent(t.id)}/participants`;for(let a of e)await _.post(n,{user:a});for(let a of s)await _.post(n,{agent:a});await f.reload(t.id)}};customElements.define("new-chat-dialog",le);var un={asker:i("Each person pays for their own questions, and is asked first."),owner:i("You pay for all answers, without being asked, as long as you own the chat."),pool:i("The pool pays for all answers while it lasts."),sponsor:i("An agent's owner pays for its answers if they sponsor it, within their budget. You pay for other agents.")},ce=class extends C{static properties={_chat:{state:!0},_pool:{state:!0}};constructor(){super(),this._chat=null,this._pool=null,this._filling=null}async open(t){this._chat=t,this._pool=null,await this._show(),this.querySelector("form").reset(),this.querySelector("input:checked")?.focus(),await this._attempt(async()=>{this._pool=await _.get(this._path)})}get _path(){return`/chats/${encodeURIComponent(this._chat?.id??"")}/pool`}render(){let t=this._chat;return t?r`<dialog class="dialog" aria-labelledby="payer-title" data-testid="payer-dialog">
      <form class="dialog-form" @submit=${e=>this._save(e)}>
        ${this._head("payer-title",i("Who pays"))}
        <div class="dialog-body">
          <fieldset class="payers">
            <legend class="visually-hidden">${i("Who pays for answers in this chat")}</legend>
            ${Object.keys(et).map(e=>this._choice(e,t))}
          </fieldset>
          <h3>${i("The pool")}</h3>
          <p class="pool-has" aria-live="polite" data-testid="pool">
            ${this._pool?pn(this._pool):"…"}
          </p>
          <label for="pool-amount">${i("Add from your balance (USD)")}</label>
          <div class="pool-fill">
            <input
              class="field"
              id="pool-amount"
              inputmode="decimal"
              autocomplete="off"
              maxlength="20"
              placeholder=${lt("5")}
              data-testid="pool-amount"
            />
            <button
              type="button"
              class="button"
              data-testid="pool-fill"
              ?disabled=${this._isBusy}
              @click=${()=>this._fill()}
            >
              ${i("Add")}
            </button>
          </div>
        </div>
        <footer>
          ${this._problem()}<button type="button" class="button" @click=${()=>this._close()}>
            ${i("Close")}
          </button>
          <button type="submit" class="button button-primary">${i("Save")}</button>
        </footer>
      </form>
    </dialog>`:r`<dialog class="dialog"></dialog>`}_choice(t,e){return r`<label class="picker-option"
      ><span class="picker-text"><b>${et[t]}</b><small>${un[t]}</small></span>
      <input type="radio" name="payer" value=${t} ?checked=${t===e.payer}
    /></label>`}_fill(){if(this._isBusy)return;let t=this.querySelector("#pool-amount"),e=ct(t.value),s=this._filling?.amount===e?this._filling:{amount:e,key:Te()};this._filling=s,this._attempt(async()=>{let n=await _.post(this._path,{amount:e},{"Idempotency-Key":s.key});this._filling=null,t.value="",this._pool=n,v(u(i("The pool now has %(amount)s."),{amount:ht(n.available,n.currency)})),ts.refresh()})}_save(t){t.preventDefault();let e=this._chat;if(!e)return;let s=new FormData(t.target).get("payer");this._attempt(async()=>{await _.send("PATCH",`/chats/${encodeURIComponent(e.id)}`,{payer:s}),await f.reload(e.id),this._close()})}};customElements.define("payer-dialog",ce);function pn({available:o,held:t,currency:e}){let s=ht(o,e);return t==="0"?u(i("Pool: %(amount)s"),{amount:s}):u(i("Pool: %(amount)s, of which %(held)s is on hold"),{amount:s,held:ht(t,e)})}var mn=new TextEncoder,J=o=>mn.encode(o);async function K(o){return new Uint8Array(await crypto.subtle.digest("SHA-256",o))}var B=o=>Array.from(o,t=>t.toString(16).padStart(2,"0")).join(""),P=o=>Uint8Array.from(atob(o),t=>t.charCodeAt(0));function it(...o){try{return o.every(t=>btoa(atob(t))===t)}catch(t){if(t instanceof DOMException)return!1;throw t}}async function vt({name:o,text:t,signatures:e},s,n){let a=new Map(e.map(l=>[B(l.subarray(0,4)),l]));for(let{kty:l,crv:c,x:h,uamp_owner:p=n}of s){if(p!==n||l!=="OKP"||c!=="Ed25519"||!h)continue;let g=P(h.replaceAll("-","+").replaceAll("_","/")),y=a.get(await fn(o,g))?.slice(4);if(y)try{let w=await crypto.subtle.importKey("raw",g,"Ed25519",!1,["verify"]);return await crypto.subtle.verify("Ed25519",w,y,J(t))?"signed":"changed"}catch(w){if(w instanceof DOMException&&w.name==="NotSupportedError")return"unsupported";throw w}}return"unknown_key"}async function fn(o,t){let e=Uint8Array.of(...J(`${o}
`),1,...t);return B((await K(e)).subarray(0,4))}var _n="uamp chat log 1",gn="log",bn=2e3,yn=/^(?<origin>(?<server>[^\s+]{1,500})\/chats\/(?<chatId>[A-Za-z0-9_-]{1,40}))\n(?<seq>0|[1-9][0-9]{0,15})\n(?<root>[A-Za-z0-9+/]{43}=)\ntime (?<at>0|[1-9][0-9]{0,15})\n\n\u2014 (?<name>[^\s+]+) (?<signature>[A-Za-z0-9+/]{91}=)\n$/,Is=o=>Uint8Array.from({length:o.length/2},(t,e)=>Number.parseInt(o.slice(2*e,2*e+2),16)),he=async o=>B(await K(J(o)));async function kt(o){let t;try{t=is(o)}catch(e){if(e instanceof TypeError)return null;throw e}return he(t)}var Q=({content:o,content_items:t})=>kt([o||"",t??[]]),Ms=(o,t)=>he(`${_n}
${o}
${t}
`),Rs=({event_type:o,response_id:t,at:e},s)=>he(`${o}
${t}
${e}
${s}
`);async function Ns(o,t,e){let s=new Uint8Array(72);return s.set(Is(o)),new DataView(s.buffer).setBigUint64(32,BigInt(t)),s.set(Is(e),40),B(await K(s))}async function Ls(o,t){let e=o.length<=bn?yn.exec(o)?.groups:void 0;if(!e||e.name!==e.origin||!it(e.root,e.signature))return{state:"changed",head:null};let{origin:s,server:n,chatId:a}=e,l=B(P(e.root)),[c,h]=[Number(e.seq),Number(e.at)],p=`${s}
${e.seq}
${e.root}
time ${e.at}
`,g={name:s,text:p,signatures:[P(e.signature)]};return{state:await vt(g,t,gn),head:{server:n,chatId:a,seq:c,chainHash:l,at:h,text:p}}}var Ds=new Set(["response.done","response.cancelled","response.error"]),wn=/^[0-9a-f]{64}$/,Ps=async o=>o?kt(o):"",$n=o=>Date.parse(`${o}`.replace(/(\.\d{3})\d+/,"$1")),js=(o,t,e)=>JSON.stringify([t,o.role??null,o.name||"",o.response_id||"",o.status||"completed",e??null,o.reply_to||"",o.thread||"",!!(o.thread&&o.also_in_chat),!!o.copied_from]),nt=(o,t)=>`${t} ${o}`,vn=o=>!!o.message&&typeof o.message=="object";function de({event_type:o,event:t}){let e=o==="message.created"&&vn(t)?t.message:t,s=e!==t;if(!s&&o!=="message.edited")return null;let n=s?e.id:e.message_id,a=s?0:Number(e.revision??0);return typeof n!="string"||!Number.isInteger(a)?null:{id:n,revision:a,body:e}}var xt=class{constructor(t,e){this._chatId=t,this._report=e,this._messages=new Map,this._first=1/0,this._final=0,this.last={seq:0,hash:null},this.entries=0,this.erased=0,this.unchained=0,this._chainedFrom=0,this._announced=new Map,this._texts=new Map,this._edits=new Map,this._deleted=new Map,this._signatures=new Map}async addMessages(t){let e=await Promise.all(t.map(s=>Promise.all([Q(s),Ps(s.signature)])));for(let[s,n]of t.entries()){let[a,l]=e[s];this._first=Math.min(this._first,n.seq),this._final=Math.max(this._final,n.seq),this._messages.set(n.id,{seq:n.seq,facts:js(n,n.seq,$n(n.created_at)),kind:n.sender_kind??null,sender:n.sender_id??null,responseId:n.response_id||"",signature:l,revision:n.revision??0,text:a,isDeleted:!!n.deleted_at})}}async addEntries(t,e){let s=[this.last,...t.map(a=>({seq:a.seq,hash:a.chain_hash}))],n=await Promise.all(t.map((a,l)=>this._hashed(a,s[l])));for(let a of n)this._addEntry(a,e)}async finish(t,e){let s=await Q({}),n=new Set,a=new Set;for(let[h,p]of this._messages)this._isLogged(h,p,s)?this._isVerified(h,p,s)||a.add(h):(n.add(h),this._report("message_changed",p.seq,h));for(let{id:h,revision:p,text:g}of t){if(n.has(h)||this._deleted.has(h))continue;let y=this._announced.get(h);this._texts.has(nt(h,p))?y&&!this._hasText(h,y.seq,p,g)&&(n.add(h),this._report("message_changed",y.seq,h)):a.add(h)}let l=this._addMissing();e&&e.seq>this.last.seq&&this._report("entry_missing",this.last.seq+1),this._chainedFrom&&!e&&this._report("not_signed",this.last.seq);let c=e?Math.max(0,this.last.seq-e.seq):0;return{unverified:a.size,absent:l,unsigned:c}}async _hashed(t,e){let s=de(t),[n,a,l]=await Promise.all([t.digest??kt(t.event),s&&!t.digest?Q(s.body):"",Ds.has(t.event_type)?Ps(t.event.signature):""]);return{line:t,text:a,signature:l,isAsHashed:await this._isAsHashed(t,e,n)}}async _isAsHashed(t,e,s){let{seq:n,chain_hash:a}=t;if(a===null||n!==e.seq+1)return!0;let l=e.hash??await Ms(this._chatId,n-1);return s===null||![l,s,a].every(c=>wn.test(c))?!1:await Ns(l,n,await Rs(t,s))===a}_addEntry(t,e){let{line:s,isAsHashed:n}=t,{seq:a,chain_hash:l}=s;a!==this.last.seq+1&&this._report("entry_missing",this.last.seq+1),this.entries+=1,s.digest!==void 0&&(this.erased+=1),l!==null?this._chainedFrom||=a:this._chainedFrom||(this.unchained+=1),(!n||l===null&&this._chainedFrom)&&this._report("entry_changed",a,de(s)?.id),e?.seq===a&&e.chainHash!==l&&this._report("checkpoint_changed",a),this.last={seq:a,hash:l},this._take(t)}_take({line:t,text:e,signature:s}){let{seq:n,event_type:a,response_id:l,event:c,chain_hash:h}=t,p=t.digest===void 0,g=de(t);if(a==="message.created"&&g&&h!==null){let{id:I,body:O}=g;this._announced.set(I,{seq:n,facts:js(O,n,O.created_at),kind:O.sender_kind??null,sender:O.sender_id??null,firstId:String(O.version_of||I),isWhole:p})}else if(a==="message.deleted"){let I=String(c.message_id);this._deleted.set(I,!!this._deleted.get(I)||p)}else Ds.has(a)&&h!==null&&p&&this._signatures.set(l,s);if(!g||e===null)return;let{id:y,revision:w}=g;this._texts.set(nt(y,w),e),w&&this._edits.set(y,Math.max(w,this._edits.get(y)??0))}_isOlder(t,e){let s=this._chainedFrom;return!s||!this._announced.has(t)&&e>0&&e<s}_hasText(t,e,s,n){if(this._isOlder(t,e))return!0;let a=this._texts.get(nt(t,s));return a===""||n!==null&&a===n}_lastRevision(t){return this._edits.get(t)??(this._texts.has(nt(t,0))?0:null)}_isLogged(t,e,s){let n=this._announced.get(t);if(n?.isWhole){let l=[null,"agent",e.kind].includes(n.kind),c=[null,"anonymous",n.sender].includes(e.sender);if(n.facts!==e.facts||!l||!c)return!1}let a=this._signatures.get(e.responseId);return a!==void 0&&a!==e.signature?!1:e.isDeleted?this._deleted.has(t)&&e.text===s:this._hasText(t,e.seq,e.revision,e.text)}_isVerified(t,e,s){let n=this._announced.get(t);if(e.isDeleted)return!n||!!this._deleted.get(t);if(n&&!n.isWhole)return e.text===s;if(n&&n.kind!==null&&n.kind!==e.kind)return!1;let a=(this._lastRevision(t)??e.revision)===e.revision,l=e.text!==null&&this._texts.get(nt(t,e.revision))===e.text;return a&&l&&!this._deleted.has(t)}_addMissing(){let t=new Map;for(let{firstId:s,seq:n,isWhole:a}of this._announced.values()){let{covered:l=0}=t.get(s)??{};t.set(s,{current:n,covered:a?n:l})}let e=0;for(let[s,{firstId:n,seq:a}]of this._announced){let{current:l,covered:c}=t.get(n)??{current:a,covered:0};this._messages.has(s)||a<c||(this._first<a&&a<this._final&&a===l?this._report("message_missing",a,s):e+=1)}return e}};var kn=0,xn=1,Us=o=>K(Uint8Array.of(kn,...J(o))),ot=(o,t)=>K(Uint8Array.of(xn,...o,...t)),Et=(o,t)=>B(o)===B(t),U=o=>Math.floor(o/2);async function Fs(o,t,{index:e,size:s,root:n}){if(e>=s)return!1;let[a,l,c]=[o,e,s-1];for(let h of t){if(c===0)return!1;if(l%2||l===c)for(a=await ot(h,a);l%2===0&&l;)[l,c]=[U(l),U(c)];else a=await ot(a,h);[l,c]=[U(l),U(c)]}return c===0&&Et(a,n)}async function Bs(o,t,e){if(t.size>e.size)return!1;if(t.size===e.size)return o.length===0&&Et(t.root,e.root);let[s,n]=[t.size-1,e.size-1];for(;s%2;)[s,n]=[U(s),U(n)];let[a,...l]=s===0?[t.root,...o]:o,[c,h]=[a,a];for(let p of l){if(n===0)return!1;if(s%2||s===n)for(c=await ot(p,c),h=await ot(p,h);s%2===0&&s;)[s,n]=[U(s),U(n)];else h=await ot(h,p);[s,n]=[U(s),U(n)]}return n===0&&Et(c,t.root)&&Et(h,e.root)}var En="tree",Sn="log-tree",Cn="c2sp.org/tlog-proof@v1",Hs=1e4,An=32,On=63,Tn=Hs+50*On,qn=/^(?<origin>[^\s+]{1,500})\n(?<size>[1-9][0-9]{0,14})\n(?<root>[A-Za-z0-9+/]{43}=)\n$/,In=/^\u2014 (?<name>[^\s+]{1,300}) (?<signature>[A-Za-z0-9+/]{8,500}={0,2})$/,Mn=/^index (0|[1-9][0-9]{0,14})$/,Rn=/^[A-Za-z0-9+/]{43}=$/,St=o=>typeof o=="string"&&Rn.test(o)&&it(o);function Vs(o){let t=o.indexOf(`

`);return t<0?[o,""]:[o.slice(0,t+1),o.slice(t+2)]}async function Ws(o,t){let[e,s]=Vs(o),n=o.length<=Hs?qn.exec(e)?.groups:void 0,a=s.split(`
`),l=a.slice(0,-1).map(w=>In.exec(w)?.groups),c=a.at(-1)===""&&l.length>0&&l.length<=An;if(!n||!c||!St(n.root))return{state:"changed",head:null};let h=[];for(let w of l){if(!w||!it(w.signature))return{state:"changed",head:null};w.name===n.origin&&h.push(P(w.signature))}let{origin:p,root:g}=n;return{state:await vt({name:p,text:e,signatures:h},t,En),head:{origin:p,size:Number(n.size),root:g}}}function Ks(o){let[t,e]=Vs(o),[s,n,...a]=t.split(`
`).slice(0,-1),l=Mn.exec(n??"")?.[1];return!(o.length<=Tn&&s===Cn&&a.every(St))||!l||!e?null:{index:Number(l),path:a.map(P),note:e}}async function zs({index:o,path:t},e,{origin:s,size:n,root:a}){return s!==`${e.server}/${Sn}`?!1:Fs(await Us(e.text),t,{index:o,size:n,root:P(a)})}var Nn={signed:null,unsupported:null,changed:"tree_changed",unknown_key:"tree_key_unknown"},H=class extends Error{constructor(t){super(t),this.kind=t}};async function Xs({head:o,proof:t},e,s){try{return await Ln({head:o,proof:t},e,s)}catch(n){if(n instanceof H)return{state:"wrong",problem:n.kind,newest:null};throw n}}async function Ln({head:o,proof:t},e,s){let n=await s.newest();if(n===null){if(e)throw new H("tree_rewritten");if(o&&t)throw new H("tree_proof_changed");return{state:"absent",problem:null,newest:null}}let a=await s.keys(),l=await Ys(n,a);if(e&&!await Zs(e,l,s))throw new H("tree_rewritten");if(!o||t===null)return{state:"pending",problem:null,newest:l};let c=Ks(t);if(!c)throw new H("tree_proof_changed");let h=await Ys(c.note,a);if(!await zs(c,o,h)||!await Zs(h,l,s))throw new H("tree_proof_changed");return{state:"included",problem:null,newest:l}}async function Ys(o,t){let{state:e,head:s}=await Ws(o,t),n=Nn[e];if(n||!s)throw new H(n??"tree_changed");return s}var Gs=({size:o,root:t})=>({size:o,root:P(t)});async function Zs(o,t,e){let n=o.size<t.size?await e.consistency(o.size,t.size):[];return n?.every(St)?Bs(n.map(P),Gs(o),Gs(t)):!1}var Dn=100,ti=new Set(["history_rewritten","history_cut"]),Pn=new Set([...ti,"entry_changed","entry_missing","checkpoint_changed","not_signed","head_changed","head_key_unknown"]),jn=1e3,V=class extends Error{},Js=o=>o,Qs=(o,t)=>{o[t]=(o[t]??0)+1},ue=({answers:o,receipts:t})=>(o.unsupported??0)+(t.unsupported??0);function Un(o,t){let{problemCount:e,head:s,headState:n,unverified:a,absent:l,unsigned:c,unchained:h}=o;if(t)return"rewritten";if(e)return"changed";let p=a+l+c+h+ue(o);return s&&n==="signed"&&!p?"unchanged":"incomplete"}var Ct=class{constructor(t,e,{known:s={end:null,tree:null},tree:n=null}={}){this._chatId=t,this._keys=e,this._known=s,this._tree=n,this._proof=null,this._kinds=new Set,this._questions=new Map,this._hasEnd=!1,this._log=new xt(t,(a,l,c)=>this._report({kind:a,seq:l,messageId:c})),this._result={verdict:"incomplete",messages:0,entries:0,erased:0,unchained:0,unverified:0,absent:0,unsigned:0,head:null,headState:null,end:null,tree:null,known:s,answers:{},receipts:{},problemCount:0,problems:[]}}get progress(){let{messages:t,head:e}=this._result;return{messages:t,entries:this._log.entries,total:e?.seq??0}}async add(t){for(let e=0,s=0;e<t.length;e=s){let n=t[e]?.type;for(;s<t.length&&t[s]?.type===n;)s+=1;if(this._hasEnd)throw new V;await this._addAll(n,t.slice(e,s))}}async finish(t=[]){if(!this._hasEnd)throw new V;let e=await Promise.all(t.map(async F=>({id:F.id,revision:F.revision??0,text:await Q(F)}))),{head:s}=this._result,n=await this._log.finish(e,s),{entries:a,erased:l,unchained:c,last:h}=this._log,{end:p}=this._known;p&&p.seq>h.seq&&this._report({kind:"history_cut",seq:p.seq,since:p.at});let g=await this._checkTree(),w=!this._hasAny(Pn)&&h.hash!==null?{seq:h.seq,hash:h.hash}:null,I={...this._result,...n,entries:a,erased:l,unchained:c,tree:g,end:w},O=I.problems.toSorted((F,Oi)=>F.seq-Oi.seq);return{...I,problems:O,verdict:Un(I,this._hasAny(ti))}}async _checkTree(){if(!this._tree)return null;let{tree:t}=this._known,{head:e,headState:s}=this._result,n=s==="changed"?{head:null,proof:null}:{head:e,proof:this._proof},a=await Xs(n,t,this._tree);return a.problem&&this._report({kind:a.problem,seq:0,since:t?.at}),a}async _addAll(t,e){if(t==="message"&&this._log.entries===0)await this._addMessages(e);else if(t==="entry")await this._addEntries(e);else{if(e.length>1)throw new V;if(t==="checkpoint")await this._addHead(e[0]);else if(t==="end"&&e[0].count===this._result.messages)this._hasEnd=!0;else if(t!=="chat"||e[0].id!==this._chatId)throw new V}}async _addMessages(t){let e=await Promise.all(t.map(s=>rs(Js(s))));for(let s of e)this._questions.set(s.id,s);await Promise.all([this._log.addMessages(t),...t.map(s=>this._verify(s))]),this._result.messages+=t.length;for(let s of this._questions.keys()){if(this._questions.size<=jn)break;this._questions.delete(s)}}async _addEntries(t){await this._log.addEntries(t,this._result.head);let{end:e}=this._known;for(let{seq:s,chain_hash:n}of t)s===e?.seq&&n!==e.hash&&this._report({kind:"history_rewritten",seq:s,since:e.at})}async _addHead({note:t,tree:e}){if(this._result.headState||this._log.entries)throw new V;this._proof=typeof e=="string"?e:null;let{state:s,head:n}=await Ls(String(t),await this._keys.ofLogs());this._result.headState=s;let a=n?.chatId===this._chatId;this._result.head=a?n:null;let l=n?.seq??0;s==="changed"||!a?this._report({kind:"head_changed",seq:l}):s==="unknown_key"&&this._report({kind:"head_key_unknown",seq:l})}async _verify(t){let e=Js(t),{receipt:s}=t,n=s?[s,...s.delegated??[]]:[],a=[e.signature,...n.map(c=>c.document)].filter(c=>typeof c=="string").map(as),l=(await Promise.all(a.map(c=>this._keys.of(c)))).flat();for(let c of n)await this._verifyReceipt(c,l,t,c===s?e:void 0);(t.signature||t.response_id)&&await this._verifyAnswer(e,l,t)}async _verifyReceipt(t,e,{id:s,seq:n},a){let l=this._chatId,{state:c,price:h}=await os(t,e,{chatId:l,message:a});Qs(this._result.receipts,c),h?this._report({kind:"price_changed",seq:n,messageId:s,price:h}):c==="changed"?this._report({kind:"receipt_changed",seq:n,messageId:s}):c==="unknown_key"&&this._report({kind:"key_unknown",seq:n,messageId:s})}async _verifyAnswer(t,e,{id:s,seq:n}){let a=this._chatId,{state:l,part:c,claims:h}=await ns(t,e,{chatId:a}),p=this._questions.get(h?.request_id??"");Qs(this._result.answers,l);let g=null;l==="changed"?g=c?`${c}_changed`:"answer_changed":l==="unknown_key"&&(g="key_unknown"),g&&this._report({kind:g,seq:n,messageId:s}),h&&p&&ls(h,p)==="changed"&&this._report({kind:"question_changed",seq:n,messageId:s})}_hasAny(t){return Array.from(t).some(e=>this._kinds.has(e))}_report(t){this._kinds.add(t.kind),this._result.problemCount+=1,this._result.problems.length<Dn&&this._result.problems.push(t)}};var at=class extends Error{};async function*ei(o){let t=new TextDecoder("utf-8",{fatal:!0}),e=o.getReader(),s=[];try{for(;;){let{value:n,done:a}=await e.read().catch(Fn),l=Bn(t,n,!a),c=a?l.length:l.lastIndexOf(`
`);if(s.push(l.slice(0,c<0?l.length:c)),c<0)continue;let h=s.join("").split(`
`).filter(Boolean);s=[l.slice(c+1)];for(let p=0;p<h.length;p+=50)yield h.slice(p,p+50).map(g=>JSON.parse(g));if(a)return}}finally{await e.cancel().catch(()=>{})}}function Fn(o){throw new at("The stream broke off.",{cause:o})}function Bn(o,t,e){try{return o.decode(t,{stream:e})}catch(s){throw new SyntaxError("The stream is not UTF-8.",{cause:s})}}var Hn={message_changed:i("This message differs from the one in the log."),message_missing:i("The log has a message here that is missing from the chat."),entry_changed:i("This log entry was changed or inserted later."),entry_missing:i("A log entry is missing here."),checkpoint_changed:i("This entry differs from the one that the server signed."),head_changed:i("The signature on the end of the log doesn't match."),head_key_unknown:i("The end of the log was signed with a key that this server doesn't publish."),not_signed:i("The server doesn't sign the end of this log. It may have been changed after it was signed."),answer_changed:i("This answer isn't what the agent signed: it was changed afterwards."),response_changed:i("The message is exactly what the agent signed, but the stored answer that other programs read was changed."),usage_changed:i("The message is exactly what the agent signed, but the stored usage or cost of the answer was changed."),question_changed:i("The question isn't the one that was answered."),key_unknown:i("This answer or its receipt was signed with a key that this server doesn't publish."),receipt_changed:i("This receipt isn't what the server signed."),price_changed:i("The agent signed a different price: %(price)s."),history_rewritten:i("This entry differs from the one that was here on %(time)s."),history_cut:i("The log had this entry on %(time)s, and now ends before it."),tree_changed:i("The signature on the server's checkpoint doesn't match."),tree_key_unknown:i("The server's checkpoint was signed with a key that this server does not publish."),tree_rewritten:i("The server's checkpoint doesn't continue the one that this browser saw on %(time)s: its tree of signed logs was rewritten."),tree_proof_changed:i("The server's proof that the end of the log is in its checkpoint is wrong.")},si=({kind:o,price:t,since:e})=>u(Hn[o],{...t?{price:qe(t.amount,t.currency)}:{},...e?{time:R(e)}:{}});function Vn({answers:o}){let t=(o.valid??0)+(o.rotated??0);return u(S("%(n)s answer is as its agent signed it.","%(n)s answers are as their agents signed them.",t),{n:t})}function ii({verdict:o,problemCount:t,known:e}){return o==="rewritten"?u(i("This chat's history was rewritten since you checked it on %(time)s."),{time:R(e.end?.at??0)}):o==="unchanged"?i("Nothing was changed."):o==="incomplete"?i("No change was found, but not everything could be verified."):u(S("%(n)s problem was found.","%(n)s problems were found.",t),{n:t})}function Wn({headState:o,problems:t}){return o==="unsupported"?i("This browser can't verify the signature on the end of the log."):o||t.some(({kind:e})=>e==="not_signed")?"":i("The server hasn't signed the end of the log.")}function Kn({head:o,headState:t}){return!o||t!=="signed"?"":u(i("%(server)s signed the end of the log on %(time)s."),{server:o.server,time:R(o.at*1e3)})}function zn({end:o,known:t}){return!t.end||!o?"":u(i("The log continues the one that you checked on %(time)s."),{time:R(t.end.at)})}function Yn({head:o,tree:t,known:e}){if(!t||t.problem)return[];if(t.state==="absent")return[i("The server has no checkpoint yet.")];let s=t.state==="included"?i("The end of the log is in the server's checkpoint."):i("The end of the log isn't in a checkpoint of the server yet."),n=u(i("The server's checkpoint continues the one that this browser saw on %(time)s."),{time:R(e.tree?.at??0)});return[o?s:"",e.tree?n:""]}var z=(o,t)=>o?u(t,{n:o}):"";function ni(o){let{absent:t,unverified:e,unsigned:s,unchained:n}=o;return[Wn(o),z(t,i("Messages that the log has and the chat doesn't: %(n)s. They were removed, or written during this check: verify again.")),z(e,i("Messages that the log can't confirm: %(n)s.")),z(n,i("Entries older than the hash chain, which can't be verified: %(n)s.")),z(s,i("Entries written since the end of the log was signed: %(n)s.")),z(ue(o),i("Signatures that this browser can't verify: %(n)s."))].filter(Boolean)}function oi(o){let{messages:t,entries:e,answers:s,erased:n}=o;return[u(S("%(n)s message was checked.","%(n)s messages were checked.",t),{n:t}),u(S("%(n)s log entry was checked.","%(n)s log entries were checked.",e),{n:e}),s.valid||s.rotated?Vn(o):"",Kn(o),zn(o),...Yn(o),z(s.unsigned??0,S("%(n)s answer is unsigned.","%(n)s answers are unsigned.",s.unsigned??0)),z(n,i("Entries whose content was deleted, so only a hash is left: %(n)s."))].filter(Boolean)}var Gn=o=>`/api/v1/chats/${encodeURIComponent(o)}/export?format=ndjson&log=true`;async function ri(o){let t=(o.headers.get("Content-Type")??"").includes("json");return new Y(o.status,t?await o.json():{})}var tt=o=>o.catch(t=>{throw t instanceof TypeError?new Y(0):t}),Zn={of:o=>tt(_t.of(o)),ofLogs:()=>tt(_t.ofLogs())};async function ai(o,t){let e=await fetch(`/log-tree/${o}`,{cache:"no-store"});if(e.status===404)return null;if(!e.ok)throw await ri(e);return t(e)}var Xn={keys:()=>tt(_t.ofTree()),newest:()=>tt(ai("checkpoint",o=>o.text())),consistency:(o,t)=>tt(ai(`consistency?from=${o}&to=${t}`,async e=>(await e.json()).hashes))},Jn=o=>[q,k].flatMap(({state:t})=>t.chatId===o?t.entries.filter(({deletedAt:e})=>!e):[]),pe=class extends C{static properties={_chat:{state:!0},_progress:{state:!0},_result:{state:!0}};constructor(){super(),this._chat=null,this._progress={messages:0,entries:0,total:0},this._result=null,this._stop=new AbortController}async open(t){Object.assign(this,{_chat:t,_result:null}),this._progress={messages:0,entries:0,total:0},this._stop=new AbortController,await this._show(),await this._attempt(()=>this._verify(t.id,this._stop.signal))}async _verify(t,e){try{let s=await this._checked(t,e);if(e.aborted)return;Mt.keep(t,s),this._result=s}catch(s){if(e.aborted)return;throw s instanceof at?new Y(0):s instanceof V||s instanceof SyntaxError?new Y(0,{detail:i("The chat couldn't be read to the end.")}):($(s)||(this._error=i("The check failed.")),s)}}async _checked(t,e){if(!crypto.subtle)throw new Y(0,{detail:i("This browser can't verify the chat here. It needs an https address.")});let s=await tt(fetch(Gn(t),{signal:e,cache:"no-store"}));if(!s.ok||!s.body)throw await ri(s);let n=new Ct(t,Zn,{known:Mt.of(t),tree:Xn});for await(let a of ei(s.body))await n.add(a),this._progress=n.progress;return n.finish(Jn(t))}render(){let t=this._chat;return t?r`<dialog
      class="dialog"
      aria-labelledby="verify-title"
      data-testid="verify-dialog"
      @close=${()=>this._stop.abort()}
    >
      <div class="dialog-form">
        ${this._head("verify-title",i("Verify the chat"))}
        <div class="dialog-body verify">
          <p class="quiet">
            ${u(i("This browser checks every message of %(name)s against the log, its hash chain and the published keys."),{name:f.nameOf(t)})}
          </p>
          ${this._problem()}
          ${this._result?this._outcome(this._result,t):this._error?d:this._work()}
        </div>
      </div>
    </dialog>`:r`<dialog class="dialog"></dialog>`}_work(){let{messages:t,entries:e,total:s}=this._progress,n=s?u(S("%(n)s of %(total)s log entry","%(n)s of %(total)s log entries",s),{n:e,total:s}):u(S("%(n)s message","%(n)s messages",t),{n:t});return r`<progress
        max=${s||1}
        value=${s?Math.min(e,s):d}
        aria-label=${i("Verifying")}
      ></progress>
      <p class="quiet" data-testid="verify-progress">${n}</p>
      <button
        type="button"
        class="button"
        data-testid="verify-stop"
        @click=${()=>this._close()}
      >
        ${i("Cancel")}
      </button>`}_outcome(t,e){let{verdict:s,problems:n,problemCount:a}=t,l=ni(t);return r`<p
        class="verify-verdict ${a?"is-bad":""}"
        role="status"
        data-testid="verify-verdict"
        data-verdict=${s}
        data-problems=${a}
      >
        ${m(s==="unchanged"?"seal":"alert")}<b>${ii(t)}</b>
      </p>
      ${n.length?r`<ol class="verify-problems">
              ${n.map(c=>this._problemRow(c,e))}
            </ol>`:d}
      ${l.length?r`<ul class="verify-facts" data-testid="verify-gaps">
              ${l.map(c=>r`<li>${c}</li>`)}
            </ul>`:d}
      <ul class="verify-facts quiet">
        ${oi(t).map(c=>r`<li>${c}</li>`)}
      </ul>`}_problemRow(t,e){let{kind:s,seq:n,messageId:a}=t;return r`<li data-testid="verify-problem" data-kind=${s} data-seq=${n}>
      <span>${si(t)}</span>
      ${n?r`<small class="quiet">${u(i("Entry %(seq)s"),{seq:n})}</small>`:d}
      ${a?r`<button
              type="button"
              class="link"
              @click=${()=>this._openMessage(e.id,a)}
            >
              ${i("Show message")}
            </button>`:d}
    </li>`}_openMessage(t,e){this._close(),this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:t,messageId:e}}))}};customElements.define("verify-dialog",pe);var li=/[\s\-_.,:/(]/;function Qn(o,t){let e=T(o).replace(/\s+/g,""),s=T(t);if(!e)return 1;let n=s.indexOf(T(o).trim());if(n>=0)return 1e3+(n===0||li.test(s[n-1])?500:0)-Math.min(s.length,400);let a=0,l=-1;for(let c of e){let h=s.indexOf(c,l+1);if(h<0)return 0;h===l+1?a+=8:h===0||li.test(s[h-1])?a+=6:a+=1,l=h}return a+1/(1+s.length)}function ci(o,t,e){return t.map(s=>({choice:s,score:Qn(o,e(s))})).filter(({score:s})=>s>0).toSorted((s,n)=>n.score-s.score).map(({choice:s})=>s)}var to=50,hi={system:i("system"),light:i("light"),dark:i("dark")};async function eo(o){try{await D.change({theme:o}),v(u(i("Theme: %(name)s"),{name:hi[o]}))}catch(t){if(!$(t))throw t;v(t.message)}}var me=o=>()=>dispatchEvent(new CustomEvent("open-settings",{detail:o})),fe=class extends b{static properties={_typed:{state:!0},_active:{state:!0},_isOpen:{state:!0}};constructor(){super(),this._typed="",this._active=0,this._isOpen=!1,this._found=[]}connectedCallback(){super.connectedCallback(),addEventListener("keydown",t=>{(t.ctrlKey||t.metaKey)&&!t.shiftKey&&!t.altKey&&t.key.toLowerCase()==="k"&&(t.preventDefault(),this._isOpen?this._dialog.close():document.querySelector("dialog[open]")||this.open())})}async open(){this._typed="",this._active=0,this._isOpen=!0,await this.updateComplete,this._dialog.showModal(),this._input.value="",this._input.focus()}get _dialog(){return this.querySelector("dialog")}get _input(){return this.querySelector("input")}render(){return this._found=this._isOpen?ci(this._typed,this._choices(),({name:t})=>t).slice(0,to):[],r`<dialog
      class="dialog palette"
      aria-label=${i("Commands and chats")}
      data-testid="palette"
      @close=${()=>this._closed()}
      @click=${t=>this._outside(t)}
    >
      <div class="palette-box">
        <label class="palette-field"
          >${m("search")}<input
            type="text"
            role="combobox"
            aria-label=${i("Jump to a chat or run a command")}
            placeholder=${i("Jump to a chat or run a command")}
            autocomplete="off"
            spellcheck="false"
            maxlength="100"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant=${this._found.length?`palette-${this._active}`:d}
            data-testid="palette-text"
            @input=${()=>this._written()}
            @keydown=${t=>this._key(t)}
        /></label>
        <ul
          class="palette-list"
          id="palette-list"
          role="listbox"
          aria-label=${i("Commands and chats")}
        >
          ${this._found.map((t,e)=>this._option(t,e))}
        </ul>
        ${this._found.length?d:r`<p class="palette-none" role="status">
                ${i("No results. Try a shorter search.")}
              </p>`}
      </div>
    </dialog>`}updated(){this.querySelector("[aria-selected=true]")?.scrollIntoView({block:"nearest"})}_option(t,e){return r`<li
      role="option"
      id="palette-${e}"
      aria-selected=${String(e===this._active)}
      @click=${()=>this._choose(t)}
    >
      ${t.picture}<span dir="auto">${t.name}</span><small>${t.note}</small>
    </li>`}_choices(){let t=c=>()=>this.dispatchEvent(new CustomEvent(c,{bubbles:!0})),e=c=>()=>location.assign(c),s=document.querySelector("form[action$='logout/'], form[action$=logout]"),n=!!document.querySelector("chat-view .members-button"),a=[{name:i("New chat"),note:"",picture:m("add"),run:t("new-chat")},{name:i("Search messages"),note:i("Ctrl+Shift+F"),picture:m("search"),run:t("open-search")},{name:i("Threads"),note:i("Ctrl+Shift+L"),picture:m("thread"),run:t("open-threads")},n&&{name:i("Show or hide the members"),note:"",picture:m("members"),run:t("toggle-members")},n&&{name:i("Invite, share, download"),note:"",picture:m("link"),run:()=>this.dispatchEvent(new CustomEvent("share-chat",{bubbles:!0,detail:f.get(q.state.chatId)}))},{name:i("Keyboard shortcuts"),note:"?",picture:m("code"),run:t("show-shortcuts")},...Object.entries(hi).filter(([c])=>c!==D.values.theme).map(([c,h])=>({name:u(i("Theme: %(name)s"),{name:h}),note:"",picture:m("spark"),run:()=>eo(c)})),{name:i("Settings"),note:"",picture:m("settings"),run:me("")},{name:i("Notifications"),note:i("Settings"),picture:m("settings"),run:me("notifications")},{name:i("Profile and picture"),note:i("Settings"),picture:m("settings"),run:me("profile")},{name:i("Account and API keys"),note:"",picture:m("file"),run:e("/account")},{name:i("Money"),note:"",picture:m("wallet"),run:e("/money")},{name:i("Agents"),note:"",picture:m("spark"),run:e("/agents")},s!==null&&{name:i("Sign out"),note:"",picture:m("back"),run:()=>s.requestSubmit()}],l=f.list.map(c=>{let h=f.others(c),p=()=>this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:c.id}));return{name:f.nameOf(c),note:Nt(c).counts?u(i("%(n)s unread"),{n:Nt(c).shown}):i("Chat"),picture:Ve(c,f.nameOf(c),h),run:p}});return[...a.filter(c=>c!==!1),...l]}_written(){this._typed=this._input.value,this._active=0}_key(t){if(t.isComposing||t.keyCode===229)return;let e={ArrowDown:1,ArrowUp:-1}[t.key];e&&this._found.length?(t.preventDefault(),this._active=(this._active+e+this._found.length)%this._found.length):t.key==="Enter"?(t.preventDefault(),this._found[this._active]&&this._choose(this._found[this._active])):t.key==="Escape"&&t.stopPropagation()}_choose({run:t}){this._dialog.close(),t()}_closed(){this._isOpen=!1}_outside(t){t.target===this._dialog&&this._dialog.close()}};customElements.define("command-palette",fe);var _e=/Mac|iPhone|iPad/.test(navigator.userAgent)?"⌘":i("Ctrl"),di=i("Shift"),so=[{heading:i("Anywhere"),keys:[["?",i("Show keyboard shortcuts")],[`${_e} K`,i("Jump to a chat or run a command")],[`${_e} ${di} F`,i("Search messages")],[`${_e} ${di} L`,i("Threads you follow")],[i("Esc"),i("Close dialog, or stop your running answers")]]},{heading:i("While you write"),keys:[["Enter",i("Send")],[i("Shift Enter"),i("New line")],[i("Alt Enter"),i("Queue: send when the answer is done")],["@",i("Mention a member")],["↑",i("Edit last message (empty composer)")]]},{heading:i("In the messages"),keys:[["↑ ↓",i("Move between messages")],["M",i("Open the message menu")],["T",i("Open the thread of a message; Esc closes it")]]},{heading:i("In a call"),keys:[["M",i("Toggle mute (when not typing)")]]}],io=o=>o instanceof HTMLElement&&(o.isContentEditable||o.matches("input, textarea, select")),ge=class extends b{connectedCallback(){super.connectedCallback(),addEventListener("show-shortcuts",()=>this.open()),addEventListener("keydown",t=>{t.key!=="?"||t.ctrlKey||t.metaKey||t.altKey||t.isComposing||io(t.target)||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}open(){this._dialog.showModal()}get _dialog(){return this.querySelector("dialog")}render(){return r`<dialog class="dialog" aria-labelledby="shortcuts-title" data-testid="shortcuts">
      <div class="dialog-form">
        <header>
          <h2 id="shortcuts-title">${i("Shortcuts and commands")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${i("Close")}
            title=${i("Close")}
            @click=${()=>this._dialog.close()}
          >
            ${m("close")}
          </button>
        </header>
        <div
          class="dialog-body shortcuts"
          tabindex="0"
          role="region"
          aria-labelledby="shortcuts-title"
        >
          ${so.map(({heading:t,keys:e})=>r`<h3>${t}</h3>
                <dl>
                  ${e.map(([s,n])=>r`<div>
                        <dt>${s.split(" ").map(a=>r`<kbd>${a}</kbd>`)}</dt>
                        <dd>${n}</dd>
                      </div>`)}
                </dl>`)}
          <h3>${i("Commands in the message field")}</h3>
          <dl>
            ${gs.map(({name:t,argument:e,note:s})=>r`<div>
                  <dt><kbd>/${t}${e?` ${e}`:""}</kbd></dt>
                  <dd>${s}</dd>
                </div>`)}
          </dl>
        </div>
      </div>
    </dialog>`}};customElements.define("shortcuts-dialog",ge);var be="uamp.push.off",ye="uamp.push.id",we=()=>"PushManager"in window&&!!navigator.serviceWorker&&gt()==="granted",$e=()=>localStorage.getItem(be)==="1",At=()=>localStorage.getItem(ye)??"";function ui(o){let t=async()=>{try{await pi(o)&&dispatchEvent(new Event("push-devices"))}catch(e){if(!$(e))throw e}};return addEventListener("notification-permission",t),t()}async function pi(o){if(!we()||$e())return!1;let t=await navigator.serviceWorker.getRegistration();if(!t?.active)return!1;let{key:e}=await o.get("/me/push-key");try{let{endpoint:s,keys:n}=(await no(t.pushManager,e)).toJSON(),{id:a}=await o.post("/me/push-subscriptions",{endpoint:s,p256dh:n?.p256dh,auth:n?.auth});return localStorage.setItem(ye,a),!0}catch(s){if(!(s instanceof DOMException))throw s;return!1}}async function mi(o){localStorage.removeItem(be),await pi(o)}async function fi(o){return(await o.get("/me/push-subscriptions")).data}async function _i(o,t){if(await o.send("DELETE",`/me/push-subscriptions/${t}`),t!==At())return;localStorage.setItem(be,"1"),localStorage.removeItem(ye),await(await(await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription())?.unsubscribe()}async function no(o,t){let e=await o.getSubscription();return e&&oo(e.options.applicationServerKey)===t?e:(await e?.unsubscribe(),o.subscribe({userVisibleOnly:!0,applicationServerKey:t}))}var oo=o=>btoa(String.fromCharCode(...new Uint8Array(o??new ArrayBuffer(0)))).replaceAll("+","-").replaceAll("/","_").replace(/=+$/,"");var ve=class extends C{static properties={_subject:{state:!0}};constructor(){super(),this._subject=null}async open(t){this._subject=t,await this._show()}get _chat(){return f.get(q.state.chatId)}render(){if(!this._subject)return r`<dialog class="dialog"></dialog>`;let{kind:t,name:e}=this._subject,s=this._chat?.participants.find(l=>l.kind===t&&l.name===e),n=t==="user"&&e===x.username,a=f.directWith(e,t)?.id===q.state.chatId;return r`<dialog class="dialog" aria-labelledby="profile-name" data-testid="profile-card">
      <div class="dialog-form">
        ${this._head("profile-name",t==="user"?M.nameOf(e):e)}
        <div class="dialog-body profile-card">
          <span class="profile-face">${N(e,t,s?.online)}</span>
          <div>
            <p>
              ${t==="user"?r`<bdi>@${e}</bdi> <span class="badge">${i("person")}</span>`:r`<span class="badge">${i("agent")}</span>`}
            </p>
            ${this._facts(s,n).map(l=>r`<p class="quiet" dir="auto">${l}</p>`)}
          </div>
        </div>
        <footer>
          ${this._problem()}
          ${s?r`<button type="button" class="button" @click=${()=>this._settings(s)}>
                  ${i("Settings")}
                </button>`:d}
          ${n||a?d:r`<button
                  type="button"
                  class="button button-primary"
                  data-testid="message-profile"
                  ?disabled=${this._isBusy}
                  @click=${()=>this._message(t,e)}
                >
                  ${i("Message")}
                </button>`}
        </footer>
      </div>
    </dialog>`}_facts(t,e){if(!t)return[i("No longer in this chat")];let s=t.joined_at?u(i("In this chat since %(date)s"),{date:Me(Date.parse(t.joined_at))}):"",n=t.kind==="agent"?Z(t.pricing)||i("Free"):"";return[t.status_text??"",t.online||e?i("Online"):i("Offline"),n,s].filter(Boolean)}_settings(t){this._close(),this.dispatchEvent(new CustomEvent("open-member",{bubbles:!0,detail:{chat:this._chat,member:t}}))}_message(t,e){return this._attempt(async()=>{let s=await f.message(e,t);this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:s.id}))})}};customElements.define("profile-card",ve);var ke=class extends b{static properties={_devices:{state:!0},_error:{state:!0}};constructor(){super(),this._devices=[],this._error="",this._onAnswer=()=>this._do(async()=>{})}connectedCallback(){super.connectedCallback(),addEventListener("push-devices",this._onAnswer),this._do(async()=>{})}disconnectedCallback(){super.disconnectedCallback(),removeEventListener("push-devices",this._onAnswer)}render(){let t=we()&&($e()||!this._devices.some(({id:e})=>e===At()));return this._devices.length===0&&!t&&!this._error?d:r`<section
      class="setting-choice"
      aria-labelledby="push-devices-title"
      data-testid="push-devices"
    >
      <h3 id="push-devices-title">${i("When no chat is open")}</h3>
      <p class="quiet">${i("These browsers get notifications until you sign out there.")}</p>
      ${this._error?r`<p class="dialog-error" role="alert">${this._error}</p>`:d}
      <ul class="setting-links">
        ${this._devices.map(e=>r`<li>
              <span>${this._name(e)}</span>
              <button
                type="button"
                class="button button-quiet"
                aria-label=${u(i("Remove %(device)s"),{device:this._name(e)})}
                @click=${()=>this._remove(e)}
              >
                ${i("Remove")}
              </button>
            </li>`)}
      </ul>
      ${t?r`<button type="button" class="button" @click=${()=>this._do(()=>mi(_))}>
              ${i("Turn on for this browser")}
            </button>`:d}
    </section>`}_name({id:t,device:e}){return t===At()?u(i("%(device)s (this browser)"),{device:e}):e}async _remove(t){await this._do(()=>_i(_,t.id)),v(u(i("%(device)s gets no more notifications."),{device:t.device}))}async _do(t){this._error="";try{await t(),this._devices=await fi(_)}catch(e){if(!$(e))throw e;this._error=e.message}}};customElements.define("push-devices",ke);var gi=()=>r`<p>${u(i("You are signed in as %(name)s."),{name:x.username})}</p>
    <ul class="setting-links">
      <li><a class="button" href="/account/password">${i("Change password")}</a></li>
      <li>
        <a class="button" href="/account#devices-title">${i("Sign out everywhere else")}</a>
      </li>
      <li><a class="button" href="/account#keys-title">${i("API keys")}</a></li>
      <li><a class="button" href="/money">${i("Money")}</a></li>
      ${G.may_connect_model?r`<li>
              <a class="button" href="/connect-model">${i("Connect a model")}</a>
            </li>`:d}
    </ul>`;function bi(){let o=document.documentElement.lang;return r`<form
    class="setting-choice"
    method="post"
    action="/language"
    aria-labelledby="setting-language"
  >
    <h3 id="setting-language">${i("Language")}</h3>
    <input type="hidden" name="csrfmiddlewaretoken" .value=${_.csrfToken()} /><input
      type="hidden"
      name="next"
      .value=${location.pathname}
    />
    <div class="setting-links">
      ${G.languages.map(([t,e])=>r`<button
            class="button"
            name="language"
            value=${t}
            lang=${t}
            aria-current=${t===o?"true":d}
          >
            ${e}
          </button>`)}
    </div>
  </form>`}var xe=class extends b{static properties={_profile:{state:!0},_error:{state:!0},_busy:{state:!0}};constructor(){super(),this._profile={...M.profile(x.username)},this._error="",this._busy=!1}render(){let{_profile:t}=this;return r`<form
      class="profile-form"
      @submit=${e=>this._save(e)}
    >
      <div class="profile-head">
        <span class="profile-face">${ut(x.username,t)}</span>
        <div class="profile-picture">
          <button
            type="button"
            class="button"
            ?disabled=${this._busy}
            @click=${()=>this.querySelector("input[type=file]").click()}
          >
            ${t.avatar_url?i("Change picture"):i("Upload a picture")}
          </button>
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            hidden
            tabindex="-1"
            data-testid="picture-input"
            @change=${e=>this._upload(e)}
          />
          ${t.avatar_url?r`<button
                  type="button"
                  class="button button-quiet"
                  ?disabled=${this._busy}
                  @click=${()=>this._removePicture()}
                >
                  ${i("Remove picture")}
                </button>`:d}
          <p class="quiet">
            ${i("Cropped to a square. Visible to everyone on this server.")}
          </p>
        </div>
      </div>
      <label for="profile-name">${i("Display name")}</label>
      <input
        class="field"
        id="profile-name"
        name="display_name"
        maxlength="160"
        autocomplete="nickname"
        dir="auto"
        placeholder=${x.username}
        .value=${t.display_name??""}
        aria-describedby="profile-name-note"
        aria-invalid=${this._error?"true":d}
        @input=${e=>this._edit("display_name",e.target.value)}
      />
      <p class="quiet" id="profile-name-note">
        ${u(i("Others mention you as @%(name)s."),{name:x.username})}
      </p>
      <label for="profile-status">${i("Status")}</label>
      <input
        class="field"
        id="profile-status"
        name="status_text"
        maxlength="400"
        autocomplete="off"
        dir="auto"
        placeholder=${i("On holiday until Monday")}
        .value=${t.status_text??""}
        @input=${e=>this._edit("status_text",e.target.value)}
      />
      <label for="profile-emoji">${i("Emoji instead of initials")}</label>
      <input
        class="field"
        id="profile-emoji"
        name="avatar_emoji"
        maxlength="32"
        autocomplete="off"
        .value=${t.avatar_emoji??""}
        @input=${e=>this._edit("avatar_emoji",e.target.value.trim())}
      />
      ${yt("avatar_colour",t.avatar_colour??"",e=>this._edit("avatar_colour",e))}
      ${this._error?r`<p class="dialog-error" role="alert">${this._error}</p>`:d}
      <div>
        <button
          type="submit"
          class="button button-primary"
          data-testid="save-profile"
          ?disabled=${this._busy}
        >
          ${i("Save profile")}
        </button>
      </div>
    </form>`}_edit(t,e){this._profile={...this._profile,[t]:e}}_save(t){t.preventDefault();let{display_name:e,status_text:s,avatar_emoji:n,avatar_colour:a}=this._profile,l={display_name:e,status_text:s,avatar_emoji:n,avatar_colour:a};return this._do(()=>_.send("PATCH","/me",l),i("Profile saved."),!0)}_upload(t){let e=t.target,[s]=e.files??[];if(e.value="",!!s)return this._do(async()=>{let n=new FormData;return n.append("file",await wt(s),"picture"),_.sendForm("PUT","/me/picture",n)},i("Picture saved."))}_removePicture(){return this._do(()=>_.send("DELETE","/me/picture"),i("Picture removed."))}async _do(t,e,s=!1){this._error="",this._busy=!0;try{let n=await t();M.learn([n]),this._profile=s?{...n}:{...this._profile,avatar_url:n.avatar_url},v(e),f.refresh()}catch(n){if(!$(n))throw n;this._error=n.message}finally{this._busy=!1}}};customElements.define("profile-form",xe);var Ee={profile:i("Profile"),appearance:i("Appearance"),writing:i("Writing"),privacy:i("Privacy"),notifications:i("Notifications"),account:i("Account")},ao={system:i("System"),light:i("Light"),dark:i("Dark")},ro={comfortable:i("Comfortable"),compact:i("Compact")},lo={enter:i("Enter sends, Shift+Enter starts a new line"),ctrl_enter:i("Ctrl+Enter sends, Enter starts a new line")},co={all:i("All messages"),mentions:i("Mentions and direct messages"),none:i("Nothing")},ho={unsupported:i("This browser can't show notifications here. They need an https address."),default:i("Notifications aren't enabled in this browser."),denied:i("Notifications are blocked. Allow them in your browser's settings for this site."),granted:i("Notifications are on in this browser.")},uo={quiet_from:"22:00",quiet_until:"07:00"},Ot=()=>Intl.DateTimeFormat().resolvedOptions().timeZone||"UTC",yi=o=>o in Ee,Se=class extends b{static properties={_section:{state:!0},_error:{state:!0},_isOpen:{state:!0},_opened:{state:!0}};constructor(){super(),this._section="profile",this._error="",this._isOpen=!1}connectedCallback(){super.connectedCallback(),D.addEventListener("change",()=>this.requestUpdate()),addEventListener("notification-permission",()=>this.requestUpdate()),addEventListener("open-settings",t=>this.open(t.detail||"profile"))}async open(t){this._section=yi(t)?t:"profile",this._error="",this._isOpen=!0,await this.updateComplete,this._dialog.open||this._dialog.showModal(),this._focusTab()}render(){return r`<dialog
      class="dialog is-wide settings"
      aria-labelledby="person-settings-title"
      data-testid="settings-dialog"
      @close=${()=>{this._isOpen=!1}}
    >
      ${this._isOpen?r`<div class="dialog-form">
              <header>
                <h2 id="person-settings-title">${i("Settings")}</h2>
                <button
                  type="button"
                  class="icon-button"
                  aria-label=${i("Close")}
                  title=${i("Close")}
                  @click=${()=>this._dialog.close()}
                >
                  ${m("close")}
                </button>
              </header>
              <div class="settings-body">
                <div
                  class="settings-tabs"
                  role="tablist"
                  aria-label=${i("Sections")}
                  aria-orientation="vertical"
                  @keydown=${t=>this._key(t)}
                >
                  ${Object.entries(Ee).map(([t,e])=>r`<button
                        type="button"
                        class="settings-tab"
                        role="tab"
                        id="settings-tab-${t}"
                        aria-controls="settings-panel"
                        aria-selected=${String(t===this._section)}
                        tabindex=${t===this._section?0:-1}
                        @click=${()=>this._show(t)}
                      >
                        ${e}
                      </button>`)}
                </div>
                <div
                  class="settings-panel"
                  role="tabpanel"
                  id="settings-panel"
                  tabindex="0"
                  aria-labelledby="settings-tab-${this._section}"
                >
                  ${this._error?r`<p class="dialog-error" role="alert">${this._error}</p>`:d}${this._panel(this._section)}
                </div>
              </div>
            </div>`:d}
    </dialog>`}get _dialog(){return this.querySelector("dialog")}_focusTab(){this.querySelector("[role=tab][aria-selected=true]")?.focus()}_panel(t){return{profile:()=>this._profile(),appearance:()=>this._appearance(),writing:()=>this._writing(),privacy:()=>this._privacy(),notifications:()=>this._notifications(),account:gi}[t]()}_profile(){return r`<profile-form></profile-form>`}_appearance(){return r`${this._choice("theme",i("Theme"),ao)}${this._choice("density",i("Density"),ro)}
    ${this._switch("follow_answers",i("Follow an answer as it's written"),i("When off, the page stops with your question at the top."))}${bi()}`}_writing(){return this._choice("send_key",i("Send key"),lo)}_privacy(){return r` ${this._switch("read_receipts",i("Show others what I've read"),i("When off, others can't see what you've read. You still see what they have read."))}
    ${this._switch("typing_notices",i("Show when I'm typing"),"")}`}_notifications(){let{values:t}=D,e=gt(),s=t.quiet_from!=="";return r` <div class="setting-note" data-testid="notification-state">
        <p>${ho[e]}</p>
        ${e==="default"?r`<button
                type="button"
                class="button button-primary"
                @click=${()=>bs()}
              >
                ${i("Allow notifications")}
              </button>`:d}
      </div>
      <push-devices></push-devices>
      ${this._choice("notifications",i("Notify me about"),co,i("You can override this in each chat's settings."))}
      ${this._switch("notification_text",i("Show who wrote and what"),i("When off, a notification only says that there is a message."))}
      ${this._switch("notification_sound",i("Sound"),"")}
      ${this._switch("mail_unread",i("Email me unread messages"),i("Mentions and direct messages that stay unread for 15 minutes, at most once an hour. Needs a confirmed email address."))}
      <label class="setting"
        ><span class="picker-text"
          ><b>${i("Quiet hours")}</b
          ><small>${i("No notifications between these times")}</small></span
        >
        <input
          type="checkbox"
          role="switch"
          name="quiet"
          .checked=${s}
          @change=${n=>this._quiet(n.target.checked)}
      /></label>
      ${s?r`<div class="quiet-hours">
              ${this._time("quiet_from",i("From"))}${this._time("quiet_until",i("Until"))}
              <p class="quiet">
                ${u(i("Times are in %(zone)s."),{zone:t.time_zone.replace("_"," ")})}
                ${t.time_zone===Ot()?d:r`<button
                        type="button"
                        class="link"
                        @click=${()=>this._change({time_zone:Ot()})}
                      >
                        ${u(i("Use %(zone)s"),{zone:Ot().replace("_"," ")})}
                      </button>`}
              </p>
            </div>`:d}`}_choice(t,e,s,n=""){let a=`setting-${t}`;return r`<fieldset class="setting-choice" aria-describedby=${n?`${a}-note`:d}>
      <legend>${e}</legend>
      ${n?r`<p class="quiet" id="${a}-note">${n}</p>`:d}
      ${Object.entries(s).map(([l,c])=>r`<label class="setting-option"
            ><input
              type="radio"
              name=${a}
              value=${l}
              .checked=${D.values[t]===l}
              @change=${()=>this._change({[t]:l})}
            /><span>${c}</span></label
          >`)}
    </fieldset>`}_switch(t,e,s){return r`<label class="setting"
      ><span class="picker-text"
        ><b>${e}</b>${s?r`<small>${s}</small>`:d}</span
      >
      <input
        type="checkbox"
        role="switch"
        name=${t}
        .checked=${D.values[t]}
        @change=${n=>this._change({[t]:n.target.checked})}
    /></label>`}_time(t,e){return r`<label
      >${e}<input
        type="time"
        class="field"
        name=${t}
        required
        .value=${D.values[t]}
        @change=${s=>s.target.value&&this._change({[t]:s.target.value})}
    /></label>`}_quiet(t){return this._change(t?{...uo,time_zone:D.values.time_zone||Ot()}:{quiet_from:"",quiet_until:""})}async _change(t){this._error="";try{await D.change(t),v(i("Saved."))}catch(e){if(!$(e))throw e;this._error=e.message}this.requestUpdate()}_show(t){yi(t)&&(this._section=t),this._error=""}_key(t){let e=Object.keys(Ee),s=e.indexOf(this._section),n={ArrowDown:s+1,ArrowRight:s+1,ArrowUp:s-1,ArrowLeft:s-1,Home:0,End:e.length-1}[t.key];n!==void 0&&(t.preventDefault(),this._show(e[(n+e.length)%e.length]),this.updateComplete.then(()=>this._focusTab()))}};customElements.define("settings-dialog",Se);function Tt(o,t){return o==="agent"?t:t===x.username?i("You"):M.nameOf(t)}var po=30;function wi(o){let t=new Date(o),e=s=>String(s).padStart(2,"0");return`${t.getFullYear()}-${e(t.getMonth()+1)}-${e(t.getDate())}`}var ki=(o=Date.now())=>({from:i("from: a person"),agent:i("agent: an agent"),before:`before:${wi(o)}`,after:`after:${wi(o-po*864e5)}`}),$i=/(^|\s)(from|agent|in|has|before|after):(?:"([^"]+)"|([^\s"]+))(?=\s)/i;function qt(o,t=!1){let e=[],s=t?`${o} `:o;for(let n=$i.exec(s);n;n=$i.exec(s))e.push({name:n[2].toLowerCase(),value:n[3]??n[4]}),s=s.slice(0,n.index)+n[1]+s.slice(n.index+n[0].length).trimStart();return{filters:rt([],e),text:t?s.trimEnd():s}}var rt=(o,t)=>Array.from(new Map([...o,...t].map(e=>[e.name,e])).values());function xi(o,t){return[...o.map(({name:s,value:n})=>`${s}:${/\s/.test(n)?`"${n}"`:n}`),t.trim()].filter(Boolean).join(" ")}var Ei=o=>Array.from(qt(o,!0).text.matchAll(/"([^"]+)"|(\S+)/g),([,t,e])=>T(t??e)),mo=50,vi=220;function Si(o,t){let e=fo(o,t),s=_o(e,t),n=s.map(({at:g})=>g),a=Math.max(0,Math.min(...n,e.length)-mo),l=n.length?a:0,c=e.slice(l,l+vi),h=l>0?[{text:"…",isFound:!1}]:[],p=0;for(let g of s){let[y,w]=[g.at-l,Math.min(g.end-l,c.length)];y<p||y>=w||(y>p&&h.push({text:c.slice(p,y),isFound:!1}),h.push({text:c.slice(y,w),isFound:!0}),p=w)}return p<c.length&&h.push({text:c.slice(p),isFound:!1}),l+vi<e.length&&h.push({text:"…",isFound:!1}),h}function fo(o,t){let e=Je(o),s=T(e);return t.every(n=>s.includes(n))?e:o.replace(/\s+/g," ")}function _o(o,t){let{text:e,starts:s}=Le(o);return t.filter(Boolean).flatMap(a=>{let l=[];for(let c=e.indexOf(a);c>=0;c=e.indexOf(a,c+a.length))l.push({at:s[c],end:go(s,c+a.length)});return l}).toSorted((a,l)=>a.at-l.at||l.end-a.end)}function go(o,t){let e=o[t-1];for(;t<o.length-1&&o[t]===e;)t+=1;return o[t]}function Ci({id:o,chat_id:t,name:e,sender_kind:s,content:n,content_items:a,created_at:l,thread:c,also_in_chat:h},p,g){let y=!c||h,w=f.get(t),I=a.map(({filename:O})=>O).filter(Boolean);return r`<li>
    <button
      type="button"
      class="search-result"
      data-testid="search-result"
      @click=${()=>g(t,o,y?"":c??"")}
    >
      ${N(e,s)}
      <span class="search-words"
        ><span class="search-head"
          ><b><bdi>${Tt(s,e)}</bdi></b>
          <span class="search-chat"
            ><bdi>${w?f.nameOf(w):i("Another chat")}</bdi></span
          >
          <time datetime=${l} title=${R(Date.parse(l))}
            >${dt(Date.parse(l))}</time
          ></span
        >
        <span class="search-text" dir="auto"
          >${Si(n,p).map(({text:O,isFound:F})=>F?r`<mark>${O}</mark>`:O)}</span
        >
        ${I.length?r`<span class="search-files"
                >${m("file")}<span
                  >${I.map((O,F)=>r`${F?", ":""}<bdi>${O}</bdi>`)}</span
                ></span
              >`:d}</span
      >
    </button>
  </li>`}var It=(o,t,e,s)=>r`<li>
    <button type="button" class="search-name" @click=${s}>
      ${N(o,t)}<span><b>${o}</b> <small>${e}</small></span>
    </button>
  </li>`;function Ai({phase:o,found:t,error:e}){return o==="failed"?e:o!=="found"||!t?"":t.has_more?u(i("%(n)s or more messages found."),{n:t.data.length}):u(S("%(n)s message found.","%(n)s messages found.",t.data.length),{n:t.data.length})}var bo=250,Ce=4,Ae=class extends b{static properties={_filters:{state:!0},_text:{state:!0},_state:{state:!0}};constructor(){super(),this._filters=[],this._text="",this._state={phase:"empty"},this._asked=0,this._agents=null,this._timer=0}connectedCallback(){super.connectedCallback(),addEventListener("open-search",()=>this.open()),addEventListener("keydown",t=>{!((t.ctrlKey||t.metaKey)&&t.shiftKey&&t.key.toLowerCase()==="f")||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}async open(){await this.updateComplete,this._dialog.showModal(),this._input.select(),this._search(0)}get _dialog(){return this.querySelector("dialog")}get _input(){return this.querySelector("input")}render(){return r`<dialog
      class="dialog is-wide search"
      aria-labelledby="search-title"
      data-testid="search-dialog"
    >
      <form
        class="dialog-form"
        role="search"
        @submit=${t=>this._submit(t)}
        @keydown=${t=>this._key(t)}
      >
        <header>
          <h2 id="search-title">${i("Search")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${i("Close")}
            title=${i("Close")}
            @click=${()=>this._close()}
          >
            ${m("close")}
          </button>
        </header>
        <div class="search-field">
          <div class="search-box">
            ${m("search")}${this._filters.map(t=>this._chip(t))}
            <input
              type="search"
              aria-label=${i("Search messages, people, agents and chats")}
              placeholder=${i("Words, from:bob, has:file")}
              maxlength="400"
              autocomplete="off"
              enterkeyhint="search"
              data-testid="search-text"
              .value=${this._text}
              @input=${()=>this._written()}
            />
          </div>
          <div class="search-offers" role="group" aria-label=${i("Filters")}>
            ${this._offers()}
          </div>
        </div>
        <div
          class="search-results"
          role="region"
          aria-label=${i("Results")}
          aria-busy=${String(this._state.phase==="searching")}
        >
          ${this._results()}
        </div>
        <p class="visually-hidden" role="status">${Ai(this._state)}</p>
      </form>
    </dialog>`}_chip({name:t,value:e}){return r`<button
      type="button"
      class="search-chip"
      aria-label=${u(i("Remove the filter %(name)s: %(value)s"),{name:t,value:e})}
      data-testid="search-chip"
      @click=${()=>this._drop(t)}
    >
      <span>${t}: <b>${this._valueName(t,e)}</b></span
      >${m("close")}
    </button>`}_valueName(t,e){let s=t==="in"?f.get(e):void 0;return s?f.nameOf(s):e}_offers(){let t=ki(),e=new Set(this._filters.map(({name:a})=>a)),s=(a,l)=>r`<button type="button" class="search-offer" @click=${l}>${a}</button>`,n=a=>()=>{this._text=`${this._text.trimEnd()} ${a}:`.trimStart(),this.updateComplete.then(()=>this._input.focus())};return[q.state.chatId&&!e.has("in")?s(i("In this chat"),()=>this._add("in",q.state.chatId)):d,e.has("from")?d:s(i("From me"),()=>this._add("from",x.username)),e.has("has")?d:s(i("With files"),()=>this._add("has","file")),...Object.entries(t).filter(([a])=>!e.has(a)).map(([a,l])=>s(l,n(a)))]}_results(){let{phase:t,error:e,found:s,words:n}=this._state,a=this._names();if(t==="failed")return r`${a}
        <p class="search-note" role="alert">${e}</p>`;if(t==="empty")return r`<p class="search-note">
        ${i("Search your messages. Use filters to narrow results.")}
      </p>`;if(!s)return r`${a}${L(i("Searching"))}`;let{data:l,has_more:c,searched_chats:h,chats:p}=s;return r`${a}
    ${l.length?r`<h3>${i("Messages")}</h3>
            <ul>
              ${l.map(g=>Ci(g,n??[],(...y)=>this._openMessage(...y)))}
            </ul>`:r`<p class="search-note" data-testid="search-none">
            ${i("No messages found. Try fewer words, or remove a filter.")}
          </p>`}
    ${c?r`<p class="search-note">
            ${i("There are more. Narrow the search with before: and a date.")}
          </p>`:d}
    ${h<p?r`<p class="search-note">
            ${u(i("Only the %(searched)s latest of your %(chats)s chats were searched. Use in: to search another."),{searched:h,chats:p})}
          </p>`:d}`}_names(){let{people:t=[],agents:e=[],words:s=[]}=this._state,n=s.length?f.list.filter(a=>T(f.nameOf(a)).includes(s.join(" "))).slice(0,Ce):[];return!n.length&&!t.length&&!e.length?d:r`<h3>${i("Names")}</h3>
      <ul class="search-names" data-testid="search-names">
        ${n.map(a=>It(f.nameOf(a),"user",i("Open the chat"),()=>this._openChat(a.id)))}
        ${t.map(a=>It(a,"user",i("Messages from this person"),()=>this._add("from",a,!0)))}
        ${e.map(a=>It(a,"agent",i("Messages from this agent"),()=>this._add("agent",a,!0)))}
      </ul>`}_written(){let{filters:t,text:e}=qt(this._input.value);this._filters=rt(this._filters,t),this._text=e,this._search(bo)}_submit(t){t.preventDefault();let{filters:e,text:s}=qt(this._input.value,!0);this._filters=rt(this._filters,e),this._text=s,this._search(0)}_add(t,e,s=!1){this._filters=rt(this._filters,[{name:t,value:e}]),s&&(this._text=""),this._input.focus(),this._search(0)}_drop(t){this._filters=this._filters.filter(e=>e.name!==t),this._input.focus(),this._search(0)}_key(t){let e=this._filters.at(-1);t.key==="Backspace"&&t.target===this._input&&!this._input.value&&e&&this._drop(e.name);let s={ArrowDown:1,ArrowUp:-1}[t.key];if(!s)return;let n=[this._input,...this.querySelectorAll(".search-results button")],a=n.indexOf(document.activeElement),l=n[a+s];!l||a===-1||(t.preventDefault(),l.focus())}_search(t){clearTimeout(this._timer),this._asked+=1;let e=xi(this._filters,this._text);e?this._timer=window.setTimeout(()=>this._ask(e),t):this._state={phase:"empty"}}async _ask(t){let e=this._asked,s=Ei(this._text);this._state={...this._state,phase:"searching",words:s};let n=this._namesFor(s,e);try{let a=await _.get(`/search?limit=30&q=${encodeURIComponent(t)}`);e===this._asked&&(this._state={...this._state,phase:"found",found:a})}catch(a){if(!$(a))throw a;e===this._asked&&(this._state={...this._state,phase:"failed",error:a.message,found:void 0})}await n}async _namesFor(t,e){let s=t.length===1?t[0].replace(/^@/,""):"",n=[],a=[];if(s){this._agents||=_.get("/agents").then(c=>c.data||c);try{[n,a]=await Promise.all([_.get(`/users?q=${encodeURIComponent(s)}`).then(({data:c})=>c),this._agents])}catch(c){if(this._agents=null,!$(c))throw c}}if(e!==this._asked)return;let l=c=>T(c).startsWith(T(s));this._state={...this._state,people:n.map(({username:c})=>c).slice(0,Ce),agents:a.map(({name:c})=>c).filter(l).slice(0,Ce)}}_close(){this._dialog.close()}_openMessage(t,e,s){this._close(),this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:t,messageId:e,threadId:s}}))}_openChat(t){this._close(),this.dispatchEvent(new CustomEvent("open-chat",{bubbles:!0,detail:t}))}};customElements.define("search-dialog",Ae);var yo=300,Oe=class extends b{static properties={_threads:{state:!0},_cursor:{state:!0},_error:{state:!0}};constructor(){super(),this._threads=null,this._cursor=null,this._error=""}connectedCallback(){super.connectedCallback(),addEventListener("open-threads",()=>this.open()),addEventListener("keydown",t=>{!((t.ctrlKey||t.metaKey)&&t.shiftKey&&t.key.toLowerCase()==="l")||document.querySelector("dialog[open]")||(t.preventDefault(),this.open())})}async open(){await this.updateComplete,this._dialog.showModal(),this._threads=null,await this._load("")}get _dialog(){return this.querySelector("dialog")}async _load(t){this._error="";try{let e=await _.get(`/threads?limit=20${t?`&cursor=${encodeURIComponent(t)}`:""}`),s=t?this._threads||[]:[];this._threads=[...s,...e.data.filter(({id:n})=>!s.some(a=>a.id===n))],this._cursor=e.next_cursor}catch(e){if(e.name!=="ApiError")throw e;this._error=e.message}}render(){return r`<dialog
      class="dialog is-wide search threads"
      aria-labelledby="threads-title"
      data-testid="threads-dialog"
    >
      <div class="dialog-form" @keydown=${t=>this._key(t)}>
        <header>
          <h2 id="threads-title">${i("Threads")}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${i("Close")}
            title=${i("Close")}
            @click=${()=>this._dialog.close()}
          >
            ${m("close")}
          </button>
        </header>
        <div
          class="search-results"
          role="region"
          aria-label=${i("Threads you follow")}
          aria-busy=${String(!this._threads&&!this._error)}
        >
          ${this._body()}
        </div>
        <p class="visually-hidden" role="status">
          ${this._threads?u(S("%(n)s thread","%(n)s threads",this._threads.length),{n:this._threads.length}):""}
        </p>
      </div>
    </dialog>`}_body(){let t=this._error?r`<p class="search-note" role="alert">
          ${this._error}
          <button
            type="button"
            class="button"
            @click=${()=>this._load(this._threads&&this._cursor||"")}
          >
            ${i("Try again")}
          </button>
        </p>`:d;return this._threads?this._threads.length?r`<ul>
        ${j(this._threads,({id:e})=>e,e=>this._item(e))}
      </ul>
      ${t}
      ${this._cursor&&!this._error?r`<button
              type="button"
              class="button"
              @click=${()=>this._load(this._cursor||"")}
            >
              ${i("Show more")}
            </button>`:d}`:r`<div class="empty" role="note" data-testid="threads-none">
        ${m("thread")}
        <h3>${i("You don't follow any threads yet")}</h3>
        <p>
          ${i("To start a thread, press T on a message or choose “Reply in thread” from its menu. Threads you start, reply to or are mentioned in appear here.")}
        </p>
      </div>`:this._error?t:L(i("Loading the threads"))}_item({id:t,chat_id:e,chat_title:s,name:n,sender_kind:a,content:l,replies:c,unread:h,last_at:p}){let g=f.get(e);return r`<li>
      <button
        type="button"
        class="search-result"
        data-testid="thread-item"
        @click=${()=>this._go(e,t)}
      >
        ${N(n,a)}
        <span class="search-words"
          ><span class="search-head"
            ><b dir="auto">${Tt(a,n)}</b>
            <span class="search-chat" dir="auto"
              >${g?f.nameOf(g):s||i("Another chat")}</span
            >
            <time datetime=${p} title=${R(Date.parse(p))}
              >${dt(Date.parse(p))}</time
            ></span
          >
          <span class="search-text" dir="auto"
            >${Qe(l,yo)||i("A file or a deleted message")}</span
          >
          <span class="search-files"
            >${u(S("%(n)s reply","%(n)s replies",c),{n:c})}${h?r`<span class="unread is-replies" data-testid="thread-news"
                    >${u(i("%(n)s new"),{n:h})}</span
                  >`:d}</span
          ></span
        >
      </button>
    </li>`}_key(t){let e={ArrowDown:1,ArrowUp:-1}[t.key];if(!e)return;let s=Array.from(this.querySelectorAll(".search-results button")),n=s.indexOf(document.activeElement),a=s[n<0?0:n+e];a&&(t.preventDefault(),a.focus())}_go(t,e){this._dialog.close(),this.dispatchEvent(new CustomEvent("open-message",{bubbles:!0,detail:{chatId:t,messageId:"",threadId:e}}))}};customElements.define("threads-dialog",Oe);A("new-chat",()=>E("new-chat-dialog").startChat());A("add-members",o=>E("new-chat-dialog").addTo(o));A("open-member",({chat:o,member:t})=>E("member-dialog").open(o,t));A("open-profile",o=>E("profile-card").open(o));A("ask-to-call",o=>E("call-dialog").open(o));A("chat-settings",o=>E("chat-settings-dialog").open(o));A("share-chat",o=>E("links-dialog").open(o));A("verify-chat",o=>E("verify-dialog").open(o));A("set-payer",o=>E("payer-dialog").open(o));A("message-menu",(o,t)=>E("message-menu").open(t,o));A("chat-menu",(o,t)=>E("chat-menu").open(t,o));A("react",(o,t)=>E("emoji-picker").open(t,o));A("pick-emoji",(o,t)=>E("emoji-picker").open(t,null,o));A("delete-message",(o,t)=>E("delete-dialog").open(t,o));A("show-revisions",(o,t)=>E("revisions-dialog").open(t,o));A("show-frames",o=>E("message-console").open(o));ys(Fe).then(()=>ui(_));
